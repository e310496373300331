package builtin

import (
	"context"
	"errors"
	"fmt"
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
