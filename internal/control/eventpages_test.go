package control

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
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
)

// readStore counts the entries that are read. hold, if it is set, is called before the entries of a run are counted.
type readStore struct {
	mailbox.Store
	read *atomic.Int64
	hold func(ctx context.Context) error
}

func (s readStore) count(each func(mailbox.Message) error) func(mailbox.Message) error {
	return func(m mailbox.Message) error {
		s.read.Add(1)
		return each(m)
	}
}

func (s readStore) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	return s.Store.Read(ctx, at, after, through, s.count(each))
}

func (s readStore) ReadRun(ctx context.Context, run string, each func(mailbox.Message) error) error {
	return s.Store.ReadRun(ctx, run, s.count(each))
}

func (s readStore) Entries(ctx context.Context, run string) (map[mailbox.Address]uint64, error) {
	if s.hold != nil {
		if err := s.hold(ctx); err != nil {
			return nil, err
		}
	}
	return s.Store.Entries(ctx, run)
}

func newPages(ctx context.Context) *eventPages {
	work := newWorkGroup(slog.New(slog.DiscardHandler))
	work.ctx = ctx
	return &eventPages{work: work}
}

// putPolicy appends a request to the log of a run, which makes an event.
func putPolicy(t *testing.T, post mailbox.Store, run string, number int) {
	t.Helper()
	body, err := mailbox.Marshal(supervisor.PolicySet{By: fmt.Sprint(number)})
	if err != nil {
		t.Fatal(err)
	}
	putRequest(t, post, mailbox.At(run, mailbox.Super), mailbox.Item{ID: fmt.Sprint("q-", number), Kind: supervisor.PolicySet{}.Kind(), Body: body})
}

func putRequest(t *testing.T, post mailbox.Store, at mailbox.Address, item mailbox.Item) {
	t.Helper()
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{item}})
	if err == nil {
		_, err = mailbox.Put(t.Context(), post, at, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openedRun is a store with a run of some requests.
func openedRun(t *testing.T, post mailbox.Store, run string, requests int) {
	t.Helper()
	putEntry(t, post, mailbox.At(run, mailbox.Super), "", supervisor.Opened{Run: run, Goal: "do it", Root: "lead", Definitions: []supervisor.Definition{{Name: "lead"}}}, false)
	for i := range requests {
		putPolicy(t, post, run, i)
	}
}

// A node reads the logs of a run once: a request for what follows reads what has been appended since, and no request
// gets an event twice.
func TestRequestForEventsReadsWhatIsNew(t *testing.T) {
	var read atomic.Int64
	post := readStore{Store: memory.New(memory.Config{}), read: &read}
	openedRun(t, post, "r", 200)
	p, cfg := newPages(t.Context()), &Config{Post: post, Name: "a"}
	from := client.Cursor{}
	ask := func() (events int) {
		page, err := p.read(t.Context(), cfg, "r", from)
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
		putPolicy(t, post, "r", 1000+i)
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
	openedRun(t, post, "r", 3)
	p, cfg := newPages(t.Context()), &Config{Post: post, Name: "a"}
	count := func() int {
		page, err := p.read(t.Context(), cfg, "r", nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Events)
	}
	before := count()
	if err := post.Purge(t.Context(), mailbox.At("r", mailbox.Super), 0); err != nil {
		t.Fatal(err)
	}
	openedRun(t, post, "r", 5)
	if after := count(); after != before+2 {
		t.Errorf("%d events, want %d", after, before+2)
	}
}

// A run with more events than an index keeps is read in parts, of which each needs a replay.
func TestEventsBeyondAnIndexAreReadInParts(t *testing.T) {
	post := memory.New(memory.Config{})
	openedRun(t, post, "r", 400)
	p, cfg := newPages(t.Context()), &Config{Post: post, Name: "a"}
	whole, err := p.read(t.Context(), cfg, "r", nil)
	if err != nil || whole.More {
		t.Fatal(whole.More, err)
	}
	k := p.list[0]
	l := &k.index.list
	l.open, l.opened, k.index.truncated, k.index.logs = l.open[:100], 0, true, nil // as if the rest had no room
	from, events := client.Cursor{}, 0
	for more := true; more; {
		page, err := p.read(t.Context(), cfg, "r", from)
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
		p, cfg := newPages(t.Context()), &Config{Post: post, Name: "a"}
		for i := range indexesMax + 10 {
			run := fmt.Sprint("r", i)
			openedRun(t, post, run, 1)
			if _, err := p.read(t.Context(), cfg, run, nil); err != nil {
				t.Fatal(err)
			}
		}
		if len(p.list) != indexesMax || p.isKept("r0", nil) || !p.isKept("r100", nil) {
			t.Errorf("%d indexes", len(p.list))
		}
		p.list[len(p.list)-1].size = indexesBytesMax
		if p.open(cfg, "r100", nil, nil, nil); len(p.list) != 1 || !p.isKept("r100", nil) {
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
		p := newPages(t.Context())
		post := readStore{Store: memory.New(memory.Config{}), read: &atomic.Int64{}, hold: func(ctx context.Context) error {
			wait := 2 * requestTimeout
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
		openedRun(t, post, "r", 3)
		ask := func(run string) (client.EventsPage, error) {
			ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
			defer cancel()
			return p.read(ctx, &Config{Post: post}, run, nil)
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
		hanging := readStore{Store: post.Store, read: &atomic.Int64{}, hold: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		for k := range replaysMax + 1 {
			ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
			_, err := p.read(ctx, &Config{Post: hanging}, fmt.Sprint(k), nil)
			cancel()
			if !client.Busy(err) || errors.Is(err, errBusy) != (k == replaysMax) {
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
	p := newPages(t.Context())
	p.work.logger = slog.New(slog.NewTextHandler(&logged, nil))
	post := memory.New(memory.Config{})
	openedRun(t, post, "r", 1)
	if _, err := p.read(t.Context(), &Config{Post: panickingStore{post}}, "r", nil); !errors.Is(err, errPanic) || !strings.Contains(logged.String(), `verb=events panic="a reader's bug"`) {
		t.Errorf("%v, logged %q", err, logged.String())
	}
}
