package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
)

// heldListings is a directory whose listings end when the test says so. The nth listing returns its number.
type heldListings struct {
	begun, end chan struct{}
	n          int
	canceled   []int
}

func (h *heldListings) list(ctx context.Context) ([]string, error) {
	h.n++
	n := h.n
	h.begun <- struct{}{}
	select {
	case <-h.end:
		return []string{fmt.Sprint(n)}, nil
	case <-ctx.Done():
		h.canceled = append(h.canceled, n)
		return nil, ctx.Err()
	}
}

func newHeldListings() (*heldListings, *listingQueue) {
	h := &heldListings{begun: make(chan struct{}), end: make(chan struct{})}
	return h, &listingQueue{list: h.list}
}

// call lists the files in a goroutine.
func call(ctx context.Context, q *listingQueue) func() string {
	answer := make(chan string, 1)
	go func() {
		names, err := q.listFiles(ctx)
		answer <- fmt.Sprint(names, err)
	}()
	return func() string { return <-answer }
}

// A call that begins during a listing may know of a file that the listing has missed: it gets the next one, which all
// calls share that wait.
func TestCallsShareOnlyAListingThatBeginsAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, q := newHeldListings()
		first := call(t.Context(), q)
		<-h.begun
		var others []func() string
		for range 5 {
			others = append(others, call(t.Context(), q))
		}
		synctest.Wait()
		h.end <- struct{}{}
		if got := first(); got != "[1] <nil>" {
			t.Error(got)
		}
		<-h.begun
		h.end <- struct{}{}
		for _, other := range others {
			if got := other(); got != "[2] <nil>" {
				t.Error(got)
			}
		}
		again := call(t.Context(), q)
		<-h.begun
		h.end <- struct{}{}
		if got := again(); got != "[3] <nil>" {
			t.Error(got)
		}
	})
}

// A canceled call returns when its listing has ended, or at once if another call waits for it, for which it goes on.
func TestAListingEndsWithTheLastCallThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, q := newHeldListings()
		ctx, cancel := context.WithCancel(t.Context())
		alone := call(ctx, q)
		<-h.begun
		waiting := call(ctx, q) // for the second listing, with another call
		other := call(t.Context(), q)
		synctest.Wait()
		cancel()
		for _, canceled := range []func() string{alone, waiting} {
			if got := canceled(); got != fmt.Sprint([]string(nil), context.Canceled) {
				t.Error(got)
			}
		}
		<-h.begun // the first listing was canceled
		h.end <- struct{}{}
		if got := other(); got != "[2] <nil>" || fmt.Sprint(h.canceled) != "[1]" {
			t.Error(got, h.canceled)
		}
	})
}

// A listing for which no call waits any more does not begin, and a failure reaches those that wait and no later ones.
func TestAListingWithoutCallsDoesNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, q := newHeldListings()
		ctx, cancel := context.WithCancel(t.Context())
		first := call(t.Context(), q)
		<-h.begun
		waiting := call(ctx, q)
		synctest.Wait()
		cancel()
		_ = waiting()
		h.end <- struct{}{}
		if got := first(); got != "[1] <nil>" || h.n != 1 {
			t.Error(got, h.n)
		}
		broken := errors.New("broken")
		q.list = func(context.Context) ([]string, error) { return nil, broken }
		if _, err := q.listFiles(t.Context()); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

// A panic in a goroutine of a call is one of the call, as if the call had no goroutines: its caller is guarded.
func TestAPanicInAGoroutineOfACallIsItsOwn(t *testing.T) {
	panicOf := func(call func()) (what any) {
		defer func() { what = recover() }()
		call()
		return nil
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("file", []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	q := &listingQueue{list: func(context.Context) ([]string, error) { panic("broken") }}
	for name, call := range map[string]func(){
		"a listing":        func() { _, _ = q.listFiles(t.Context()) },
		"the next listing": func() { _, _ = q.listFiles(t.Context()) },
		"a search": func() {
			_ = (&grepSearch{workers: 2, names: []string{"file"}, found: make([]fileMatches, 1), ws: &toolWorkspace{root: root}}).searchFiles(t.Context())
		},
		"a history": func() { _, _, _ = (&gitView{repo: &gitRepository{}}).readChanges(t.Context(), 2) },
	} {
		if panicOf(call) == nil {
			t.Errorf("%s has not panicked", name)
		}
	}
}
