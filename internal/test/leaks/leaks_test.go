package leaks

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Who ends late is no leak.
func TestLateGoroutineIsNoLeak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	over := make(chan struct{})
	go func() { <-over }()
	time.AfterFunc(2*time.Second, func() { close(over) }) // goleak alone would have found it
	if err := findLeaks(Patience, []goleak.Option{before}); err != nil {
		t.Error(err)
	}
}

// Who stays is one.
func TestRemainingGoroutineIsALeak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	over := make(chan struct{})
	go func() { <-over }()
	if findLeaks(time.Second, []goleak.Option{before}) == nil {
		t.Error("it was not found")
	}
	close(over)
}

// fakeTest is a test whose cleanups run when it is told to, and that counts its errors.
type fakeTest struct {
	testing.TB
	cleanups []func()
}

func (f *fakeTest) Helper()           {}
func (f *fakeTest) Name() string      { return "TestFake/a \"quoted\" name" }
func (f *fakeTest) Cleanup(do func()) { f.cleanups = append(f.cleanups, do) }

// TestLeakOfATestCarriesItsName: a goroutine of a goroutine of a test is found by the
// label that it inherits, and one of another test is not.
func TestLeakOfATestCarriesItsName(t *testing.T) {
	f, over, begun, ended := &fakeTest{TB: t}, make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { // the other test
		defer close(ended)
		Check(f)
		go func() {
			go func() { close(begun); <-over }()
		}()
		<-begun
	}()
	<-ended
	if labeledGoroutines(t.Name()) != "" {
		t.Error("a goroutine of another test is found")
	}
	if left := awaitGoroutines(time.Second, f.Name()); !strings.Contains(left, "TestLeakOfATestCarriesItsName") {
		t.Errorf("found is %q", left)
	}
	close(over)
	f.cleanups[0]() // and now there is none: the fake would fail this test
}
