package runevent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/workgroup"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

func newPages(ctx context.Context, store mailbox.Store) *Pages {
	work := workgroup.New(slog.New(slog.DiscardHandler))
	work.Ctx = ctx
	return New(Config{Store: store, Node: "a", Work: work})
}

// A node reads the logs of a run once: a request for what follows reads what has been appended since, and no request
// gets an event twice.
func TestRequestForEventsReadsWhatIsNew(t *testing.T) {
	var read atomic.Int64
	post := testlog.CountingStore{Store: memory.New(memory.Config{}), Reads: &read}
	testlog.OpenRun(t, post, "r", 200)
	p := newPages(t.Context(), post)
	from := client.Cursor{}
	ask := func() (events int) {
		page, err := p.Read(t.Context(), "r", from)
		if err != nil {
			t.Fatal(err)
		}
		for at, n := range page.Cursor {
			from[at] = n
		}
		return len(page.Events)
	}
	first := ask()
	if first < 200 || read.Load() < 201 {
		t.Fatalf("%d events of %d entries", first, read.Load())
	}
	for i := range 20 {
		read.Store(0)
		testlog.PutPolicy(t, post, "r", 1000+i)
		if n := ask(); n != 1 || read.Load() > 3 {
			t.Errorf("%d events, %d entries were read for them", n, read.Load())
		}
	}
	read.Store(0)
	from = client.Cursor{}
	if n := ask(); n != first+20 || read.Load() > 3 {
		t.Errorf("%d events from the beginning, %d entries were read for them", n, read.Load())
	}
}

// A run that was deleted and restored has other logs: nothing of the old ones is shown.
func TestEventsOfARestoredRunAreItsOwn(t *testing.T) {
	post := memory.New(memory.Config{})
	testlog.OpenRun(t, post, "r", 3)
	p := newPages(t.Context(), post)
	count := func() int {
		page, err := p.Read(t.Context(), "r", nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Events)
	}
	before := count()
	if err := post.Purge(t.Context(), mailbox.At("r", mailbox.Super), 0); err != nil {
		t.Fatal(err)
	}
	testlog.OpenRun(t, post, "r", 5)
	if after := count(); after != before+2 {
		t.Errorf("%d events, want %d", after, before+2)
	}
}

// A run with more events than an index keeps is read in parts, of which each needs a replay.
func TestEventsBeyondAnIndexAreReadInParts(t *testing.T) {
	post := memory.New(memory.Config{})
	testlog.OpenRun(t, post, "r", 400)
	p := newPages(t.Context(), post)
	whole, err := p.Read(t.Context(), "r", nil)
	if err != nil || whole.More {
		t.Fatal(whole.More, err)
	}
	k := p.list[0]
	l := &k.index.list
	l.open, l.opened, k.index.truncated, k.index.logs = l.open[:100], 0, true, nil // as if the rest had no room
	from, events := client.Cursor{}, 0
	for more := true; more; {
		page, err := p.Read(t.Context(), "r", from)
		if err != nil {
			t.Fatal(err)
		}
		for at, n := range page.Cursor {
			from[at] = n
		}
		events, more = events+len(page.Events), page.More
	}
	if events != len(whole.Events) || len(p.list) != 2 {
		t.Errorf("%d events by %d indexes, want %d", events, len(p.list), len(whole.Events))
	}
}

func TestIndexesOfEventsKeepToTheirLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post := memory.New(memory.Config{})
		p := newPages(t.Context(), post)
		for i := range indexesMax + 10 {
			run := fmt.Sprint("r", i)
			testlog.OpenRun(t, post, run, 1)
			if _, err := p.Read(t.Context(), run, nil); err != nil {
				t.Fatal(err)
			}
		}
		if len(p.list) != indexesMax || p.IsKept("r0", nil) || !p.IsKept("r100", nil) {
			t.Errorf("%d indexes", len(p.list))
		}
		p.list[len(p.list)-1].size = indexesBytesMax
		if p.open("r100", nil, nil, nil); len(p.list) != 1 || !p.IsKept("r100", nil) {
			t.Errorf("%d indexes are kept beside one of the most bytes", len(p.list))
		}
		<-time.After(indexAge + 2*time.Second)
		if synctest.Wait(); len(p.list) != 0 {
			t.Errorf("%d indexes are kept for clients that do not come back", len(p.list))
		}
	})
}

func TestReplayThatTakesLongerThanARequestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counted atomic.Int64
		post := testlog.CountingStore{Store: memory.New(memory.Config{}), Reads: &atomic.Int64{}, Hold: func(ctx context.Context) error {
			wait := 2 * bounds.RequestTimeout
			if counted.Add(1) > 1 {
				wait = 0
			}
			select {
			case <-time.After(wait):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		testlog.OpenRun(t, post, "r", 3)
		p := newPages(t.Context(), post)
		ask := func(run string) (client.EventsPage, error) {
			ctx, cancel := context.WithTimeout(t.Context(), bounds.RequestTimeout)
			defer cancel()
			return p.Read(ctx, run, nil)
		}
		for range 2 {
			if _, err := ask("r"); !client.Busy(err) {
				t.Errorf("a client is told %v, and would not ask again", err)
			}
		}
		if got, err := ask("r"); err != nil || len(got.Events) < 3 || counted.Load() != 2 {
			t.Errorf("%d events, %v after the entries were counted %d times", len(got.Events), err, counted.Load())
		}

		// No more than replaysMax go on without their requests.
		hanging := testlog.CountingStore{Store: post.Store, Reads: &atomic.Int64{}, Hold: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		p.cfg.Store = hanging
		for k := range replaysMax + 1 {
			ctx, cancel := context.WithTimeout(t.Context(), bounds.RequestTimeout)
			_, err := p.Read(ctx, fmt.Sprint(k), nil)
			cancel()
			if !client.Busy(err) || errors.Is(err, refuse.ErrBusy) != (k == replaysMax) {
				t.Errorf("request %d: %v", k, err)
			}
		}
		<-time.After(replayTimeout + indexAge)
		if synctest.Wait(); p.detached != 0 || len(p.list) != 0 {
			t.Errorf("%d replays go on, %d indexes are kept", p.detached, len(p.list))
		}
	})
}

// panickingStore panics where an entry is read.
type panickingStore struct{ mailbox.Store }

func (panickingStore) Read(context.Context, mailbox.Address, uint64, uint64, func(mailbox.Message) error) error {
	panic("a reader's bug")
}

func TestReplayThatPanicsDoesNotEndTheNode(t *testing.T) {
	var logged strings.Builder
	post := memory.New(memory.Config{})
	testlog.OpenRun(t, post, "r", 1)
	p := newPages(t.Context(), panickingStore{post})
	p.cfg.Work = workgroup.New(slog.New(slog.NewTextHandler(&logged, nil)))
	if _, err := p.Read(t.Context(), "r", nil); !errors.Is(err, workgroup.ErrPanic) || !strings.Contains(logged.String(), `verb=events panic="a reader's bug"`) {
		t.Errorf("%v, logged %q", err, logged.String())
	}
}
