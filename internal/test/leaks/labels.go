package leaks

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// label is the profiler label that carries the name of a test. A goroutine inherits the
// labels of the goroutine that starts it.
const label = "leaks-of"

// sharedServerClock starts the goroutine of a clock that all NATS servers of a process share. It
// ends with the last of them, which may be a server of another test; Main finds it.
const sharedServerClock = "nats-server/v2/server/ats.Register"

// checkPause is the time between two checks of the goroutines of a test.
const checkPause = 20 * time.Millisecond

// Check fails the test at its end if goroutines that it started are left when Patience
// is over. It must come before anything that starts one: cleanups that are registered
// later run earlier. Tests that run in parallel do not disturb each other, because each
// goroutine carries the label of its test. A goroutine that a timer starts carries none,
// nor do those that the NATS server labels itself; Main finds those that outlive all
// tests of a package.
func Check(t testing.TB) {
	t.Helper()
	name := t.Name()
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(label, name)))
	t.Cleanup(func() {
		pprof.SetGoroutineLabels(context.Background()) // the cleanups run on the goroutine of the test
		if left := awaitGoroutines(Patience, name); left != "" {
			t.Errorf("goroutines of the test are left:\n%s", left)
		}
	})
}

// awaitGoroutines returns the goroutines of a test that are left after patience.
func awaitGoroutines(patience time.Duration, test string) (left string) {
	tick := time.NewTicker(checkPause)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		if left = labeledGoroutines(test); left == "" || time.Now().After(end) {
			return left
		}
	}
}

// labeledGoroutines returns the goroutines that carry the label of a test, as the goroutine
// profile describes them.
func labeledGoroutines(test string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	mark := fmt.Sprintf("%q:%q", label, test)
	var found []string
	for group := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(group, mark) && !strings.Contains(group, sharedServerClock) {
			found = append(found, group)
		}
	}
	return strings.Join(found, "\n\n")
}
