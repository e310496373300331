package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/troupe-run/troupe/client"
)

func newPages(ctx context.Context) *eventPages {
	return &eventPages{start: func(work func()) bool { go work(); return true }, ctx: func() context.Context { return ctx }, panicked: func(string, any) {}, detached: map[string]*replayFlight{}}
}

// longRun are the events of n entries of 100 KiB each, of two logs in turn.
func longRun(n int) *eventReplay {
	t := &eventReplay{entries: uint64(n)}
	for i := range n {
		t.list = append(t.list, pastEvent{at: fmt.Sprintf("r.%d", i%2), stamp: int64(i), n: uint64(i/2 + 1), raw: json.RawMessage(`"` + strings.Repeat("x", 100<<10) + `"`)})
	}
	return t
}

// readAll reads all pages as a client does, and counts the replays.
func readAll(t *testing.T, p *eventPages, whole *eventReplay) (events, replays int) {
	t.Helper()
	from := client.Cursor{}
	for more := true; more; {
		key, err := replayKey("r", from)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := p.read(t.Context(), key, func(context.Context) (*eventReplay, error) {
			replays++
			left := &eventReplay{entries: whole.entries}
			for _, e := range whole.list {
				if e.n > from[e.at] {
					left.list = append(left.list, e)
				}
			}
			return left, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		page, kept := rest.cutPage()
		from = advanceCursor(from, page.Cursor)
		next, err := replayKey("r", from)
		if err != nil {
			t.Fatal(err)
		}
		p.keep(key, next, kept, time.Now())
		events, more = events+len(page.Events), page.More
	}
	return events, replays
}

func TestPagesOfALongRunNeedOneReplayForEachKeptPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPages(t.Context())
		if events, replays := readAll(t, p, longRun(20)); events != 20 || replays != 1 {
			t.Errorf("%d events by %d replays", events, replays)
		}
		n := 2*keptEventsMax/(100<<10) + 10
		if events, replays := readAll(t, p, longRun(n)); events != n || replays != 3 {
			t.Errorf("%d of %d events by %d replays", events, n, replays)
		}
		<-time.After(keptEventsAge + 2*time.Second)
		if synctest.Wait(); len(p.kept) != 0 {
			t.Errorf("%d lists are kept after all were read", len(p.kept))
		}
	})
}

func TestReplayThatTakesLongerThanARequestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, replays := newPages(t.Context()), atomic.Int32{}
		slow := func(ctx context.Context) (*eventReplay, error) {
			replays.Add(1)
			select {
			case <-time.After(2 * requestTimeout):
				return longRun(3), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		ask := func(key string) (*eventReplay, error) {
			ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
			defer cancel()
			return p.read(ctx, key, slow)
		}
		for range 2 {
			if _, err := ask("r"); !client.Busy(err) {
				t.Errorf("a client is told %v, and would not ask again", err)
			}
		}
		if got, err := ask("r"); err != nil || len(got.list) != 3 || replays.Load() != 1 {
			t.Errorf("%v, %v after %d replays", got, err, replays.Load())
		}

		// No more than replaysMax go on without their requests. A finished one gives way, and none is kept for a client that
		// never comes back.
		hanging := func(ctx context.Context) (*eventReplay, error) { <-ctx.Done(); return nil, ctx.Err() }
		askHanging := func(key string) error {
			ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
			defer cancel()
			_, err := p.read(ctx, key, hanging)
			return err
		}
		for k := range replaysMax + 1 {
			if err := askHanging(fmt.Sprint(k)); !client.Busy(err) || errors.Is(err, errBusy) != (k == replaysMax) {
				t.Errorf("request %d: %v", k, err)
			}
		}
		<-time.After(replayTimeout)
		if err := askHanging("another"); !errors.Is(err, errReplaying) {
			t.Errorf("all others have finished: %v", err)
		}
		<-time.After(replayTimeout + keptEventsAge + time.Second)
		if synctest.Wait(); len(p.detached) != 0 {
			t.Errorf("%d replays are kept", len(p.detached))
		}
	})
}

func TestReplayThatPanicsDoesNotEndTheNode(t *testing.T) {
	logged := ""
	p := newPages(t.Context())
	p.panicked = func(verb string, what any) { logged = fmt.Sprint(verb, ": ", what) }
	if _, err := p.read(t.Context(), "r", func(context.Context) (*eventReplay, error) { panic("a reader's bug") }); !errors.Is(err, errPanic) || logged != "events: a reader's bug" {
		t.Errorf("%v, logged %q", err, logged)
	}
}

// detachedReplay detaches a replay that has ended from its request, and returns a weak pointer to its events.
//
//go:noinline
func detachedReplay(p *eventPages, key string) (weak.Pointer[eventReplay], error) {
	f := &replayFlight{cancel: func() {}, done: make(chan struct{}), replay: longRun(3)}
	close(f.done)
	return weak.Make(f.replay), p.detach(key, f)
}

// takeReplay takes a replay and keeps nothing of it; inlined, its result could stay on the stack of the test.
//
//go:noinline
func takeReplay(ctx context.Context, p *eventPages, key string) (events int, err error) {
	got, err := p.read(ctx, key, nil)
	if err != nil {
		return 0, err
	}
	return len(got.list), nil
}

func TestReplayThatWasTakenLeavesMemory(t *testing.T) {
	p := newPages(t.Context())
	events, err := detachedReplay(p, "r")
	if !errors.Is(err, errReplaying) {
		t.Fatal(err)
	}
	if n, err := takeReplay(t.Context(), p, "r"); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	for i := 0; i < 100 && events.Value() != nil; i++ {
		runtime.GC()
	}
	if events.Value() != nil {
		t.Error("the events are in memory after a request has taken them")
	}
	runtime.KeepAlive(p)
}
