// Package runevent makes the events of runs again from their logs, in pages, and encodes events as clients and observers
// get them. It keeps an index of the events of each run that clients read, so that the next request reads only what has
// been appended since. It decides nothing about runs, and does not check who asks.
package runevent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/workgroup"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// indexesBytesMax is how much memory the indexes of events of a node take together, indexesMax how many there are.
	indexesBytesMax = 96 << 20
	indexesMax      = 256
	// indexAge is how long an index is kept without a request for its run.
	indexAge = time.Minute
	// replayTimeout bounds an update of an index, replaysMax how many go on at once after their requests have timed out.
	replayTimeout = 2 * time.Minute
	replaysMax    = 4
	// indexAttemptsMax is how many indexes a request tries: the first may have been made of logs that are gone, the second
	// may have no room for the events of the request.
	indexAttemptsMax = 3
)

// Pages keeps an index of the events of each run that clients read: the first request for a run replays its logs,
// and the next ones read only what has been appended since. An index has the events of one run, and whoever may read a
// run may read all of them: an owner's request is checked before it comes here. A replay that takes longer than a
// request goes on until the client asks again.
type Pages struct {
	cfg Config

	mu       sync.Mutex
	list     []*keptIndex // the one that was used last is the last
	detached int          // updates whose requests have timed out
}

// Config has what reads the logs of runs for their events.
type Config struct {
	Store mailbox.Store
	// Node is the name that the events have as that of their node.
	Node string
	// Work has the goroutines that read logs.
	Work *workgroup.Group
}

// New returns pages without an index.
func New(cfg Config) *Pages { return &Pages{cfg: cfg} }

// keptIndex is an index that requests share.
type keptIndex struct {
	index *index
	turn  chan struct{} // holds a value while the index is used

	// These are guarded by the lock of Pages.
	flight *indexFlight // the update in progress; nil: there is none
	size   int          // of the index after its last update
	used   time.Time
}

// indexFlight is an update of an index in progress.
type indexFlight struct {
	cancel   context.CancelFunc
	done     chan struct{} // closed once err is set
	err      error
	detached bool
}

// Read returns the page of events after a cursor of a run.
func (p *Pages) Read(ctx context.Context, run string, from client.Cursor) (page client.EventsPage, err error) {
	var floor client.Cursor // the first index of a run has all its events, so that requests share it
	var readThrough *keptIndex
	for range indexAttemptsMax {
		k := p.open(run, from, floor, readThrough)
		err = p.update(ctx, k)
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return page, err
		}
		select {
		case k.turn <- struct{}{}:
		case <-ctx.Done():
			return page, refuse.ErrReplaying
		}
		page, err = k.index.list.page(from)
		more, entries, still := k.index.truncated, k.index.entries, k.index.has(from)
		<-k.turn
		if err != nil {
			return page, err
		}
		if !still || more && len(page.Events) == 0 { // it has dropped them meanwhile, or all of it was read
			floor, readThrough = from, k
			continue
		}
		if page.More = page.More || more; !page.More {
			page.Cursor[client.CursorEntries] = entries
		}
		return page, nil
	}
	return page, errors.Join(refuse.ErrBusy, err)
}

// IsKept reports whether there is an index with the events after a cursor.
func (p *Pages) IsKept(run string, from client.Cursor) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.find(run, from, nil) >= 0
}

// find returns the number of an index with the events after a cursor, other than one; -1: there is none. The caller holds
// the lock.
func (p *Pages) find(run string, from client.Cursor, except *keptIndex) int {
	p.dropExpired(time.Now())
	return slices.IndexFunc(p.list, func(k *keptIndex) bool {
		if k.index.run != run || k == except {
			return false
		}
		select {
		case k.turn <- struct{}{}:
			defer func() { <-k.turn }()
			return k.index.has(from)
		default: // it is used; if it loses the events of the cursor, the request begins another
			return true
		}
	})
}

// open returns an index with the events after a cursor, other than one, which is a new one with the events after floor if
// there is none.
func (p *Pages) open(run string, from, floor client.Cursor, except *keptIndex) *keptIndex {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.find(run, from, except)
	if i < 0 {
		p.list = append(p.list, &keptIndex{index: newIndex(p.cfg, run, floor, p.guard), turn: make(chan struct{}, 1)})
		i = len(p.list) - 1
	}
	k := p.list[i]
	k.used = time.Now()
	p.list = append(slices.Delete(p.list, i, i+1), k)
	p.makeRoom()
	return k
}

// makeRoom drops the indexes that were used longest ago, as the limits of memory need it. The caller holds the lock.
func (p *Pages) makeRoom() {
	sum := 0
	for i := len(p.list) - 1; i >= 0; i-- {
		if sum += p.list[i].size; i < len(p.list)-1 && (sum > indexesBytesMax || len(p.list)-i > indexesMax) {
			p.list = slices.Delete(p.list, 0, i+1)
			return
		}
	}
}

// update reads on in the logs of an index: it has what they had when update was called. It returns ErrReplaying if that
// takes longer than the request.
func (p *Pages) update(ctx context.Context, k *keptIndex) error {
	wait := ctx
	if until, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		wait, stop = context.WithDeadline(ctx, until.Add(-bounds.ReplyReserve))
		defer stop()
	}
	for range 2 {
		f, joined, err := p.begin(k)
		if err != nil {
			return err
		}
		select {
		case <-f.done:
			if errors.Is(f.err, context.Canceled) && p.cfg.Work.Ctx.Err() == nil {
				return refuse.ErrBusy // detach has ended it
			}
			if f.err != nil {
				return f.err
			}
			if !joined {
				return nil
			}
			// It may have counted the entries before the request came; the next update has not.
		case <-wait.Done():
			return p.detach(k, f)
		}
	}
	return nil
}

// begin begins an update, or returns the one in progress.
func (p *Pages) begin(k *keptIndex) (f *indexFlight, joined bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k.flight != nil {
		return k.flight, true, nil
	}
	ctx, cancel := context.WithTimeout(p.cfg.Work.Ctx, replayTimeout)
	f = &indexFlight{cancel: cancel, done: make(chan struct{})}
	if !p.cfg.Work.Start(func() {
		defer close(f.done)
		defer cancel()
		k.turn <- struct{}{}
		f.err = p.guard(func() error { return k.index.update(ctx) })
		size := k.index.bytes()
		<-k.turn
		p.end(k, f, size)
	}) {
		cancel()
		return nil, false, refuse.ErrClosing
	}
	k.flight = f
	return f, false, nil
}

// end notes the end of an update. An index whose update has failed is dropped: it may have read a part of the entries.
func (p *Pages) end(k *keptIndex, f *indexFlight, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k.flight, k.size, k.used = nil, size, time.Now()
	if f.detached {
		p.detached--
	}
	if f.err != nil {
		p.remove(k)
	}
	p.makeRoom()
	time.AfterFunc(indexAge+time.Second, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dropExpired(time.Now())
	})
}

// guard calls do, and turns a panic into an error: an entry that the reader cannot take must not end the node.
func (p *Pages) guard(do func() error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			p.cfg.Work.LogPanic("events", what)
			err = workgroup.ErrPanic
		}
	}()
	return do()
}

// detach lets an update go on without its request, unless too many do.
func (p *Pages) detach(k *keptIndex, f *indexFlight) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k.flight != f || f.detached {
		return refuse.ErrReplaying
	}
	if p.detached >= replaysMax {
		f.cancel()
		return refuse.ErrBusy
	}
	f.detached = true
	p.detached++
	return refuse.ErrReplaying
}

// remove removes an index. The caller holds the lock.
func (p *Pages) remove(k *keptIndex) {
	p.list = slices.DeleteFunc(p.list, func(other *keptIndex) bool { return other == k })
}

// dropExpired drops the indexes for which no request has come. The caller holds the lock.
func (p *Pages) dropExpired(now time.Time) {
	p.list = slices.DeleteFunc(p.list, func(k *keptIndex) bool { return k.flight == nil && now.Sub(k.used) > indexAge })
}
