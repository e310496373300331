package httpapi

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
)

const (
	// feedBytesMax is how many bytes of the newest events a feed keeps for its readers. A reader that is further behind
	// reads the logs instead.
	feedBytesMax = 1 << 20
	// pausePerReader and flushPauseMax set how long a stream waits after it has sent events, for more of them:
	// pausePerReader for each stream that the token has opened, at least flushPause.
	pausePerReader = time.Millisecond
	flushPauseMax  = 500 * time.Millisecond
)

var (
	// errFeedEnded ends a feed whose run has ended.
	errFeedEnded = errors.New("httpapi: the run has ended")
	// errBehind says that a feed no longer has the events that a reader needs next.
	errBehind = errors.New("httpapi: the reader is behind")
)

// feeds has one feed for each run that streams follow, and one for those that began with its newest entries.
type feeds struct {
	client *client.Client
	ctx    context.Context // of all feeds
	ended  sync.WaitGroup

	mu      sync.Mutex
	runs    map[string]*runFeed
	readers int
}

// runFeed follows one run for the streams of its events that one token opens: they share a subscription, and each event is
// decoded once for them.
type runFeed struct {
	feeds  *feeds
	run    string
	key    string           // in feeds
	start  client.Positions // of the stream that began it
	cancel context.CancelFunc

	readers int // guarded by feeds

	// fromNow: the feed begins with the newest entries, and start and seen are set when begun is closed.
	fromNow bool
	begun   chan struct{}

	checked  chan struct{} // closed when finished and checkErr are set
	finished bool          // the run had ended when the feed began: there is nothing to follow
	checkErr error

	mu      sync.Mutex
	seen    client.Positions // after the newest event
	events  []feedEvent
	first   uint64 // number of events[0]
	size    int
	changed chan struct{} // closed at the next event, or when err is set
	err     error         // why no event follows
}

// feedEvent is one event of a feed.
type feedEvent struct {
	event  client.Event
	raw    []byte
	cursor string // after it, for readers that have seen what the feed has; "" in a run of many agents
}

// join adds a reader to the feed of a run. If there is none, it begins at the reader's positions, or with the newest
// entries if seen is nil. leave must be called.
func (f *feeds) join(run string, seen client.Positions) *runFeed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers++
	key := run
	if seen == nil { // a reader of all events gets few from it
		key += " " + cursorNow
	}
	if feed := f.runs[key]; feed != nil {
		feed.readers++
		return feed
	}
	feed := f.begin(run, key, seen)
	f.runs[key] = feed
	return feed
}

// begin begins a feed with one reader. The caller holds the lock.
func (f *feeds) begin(run, key string, seen client.Positions) *runFeed {
	ctx, cancel := context.WithCancel(f.ctx)
	feed := &runFeed{feeds: f, run: run, key: key, start: maps.Clone(seen), seen: maps.Clone(seen), fromNow: seen == nil, cancel: cancel, readers: 1,
		changed: make(chan struct{}), checked: make(chan struct{}), begun: make(chan struct{})}
	if !feed.fromNow {
		close(feed.begun)
	}
	f.ended.Go(func() {
		err := feed.check(ctx)
		if err == nil {
			err = feed.follow(ctx)
		}
		f.mu.Lock()
		if f.runs[key] == feed {
			delete(f.runs, key) // the next stream begins another
		}
		f.mu.Unlock()
		feed.end(err)
	})
	return feed
}

// beginAlone begins a feed that no other stream joins.
func (f *feeds) beginAlone(run string, seen client.Positions) *runFeed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers++
	return f.begin(run, run, seen)
}

// leave removes a reader; a feed without readers ends.
func (f *feeds) leave(feed *runFeed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers--
	if feed.readers--; feed.readers > 0 {
		return
	}
	if f.runs[feed.key] == feed {
		delete(f.runs, feed.key)
	}
	feed.cancel()
}

// batchDelay is how long a reader waits for more events.
func (f *feeds) batchDelay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return min(max(flushPause, time.Duration(f.readers)*pausePerReader), flushPauseMax)
}

// check finds out whether there is a run to follow, for all streams that wait for that.
func (r *runFeed) check(ctx context.Context) error {
	defer close(r.checked)
	info, err := r.feeds.client.State(ctx, r.run)
	r.finished, r.checkErr = info.State == client.RunFinished, err
	if r.finished {
		return errFeedEnded
	}
	return err
}

// awaitCheck waits until the check whether there is a run to follow has ended.
func (r *runFeed) awaitCheck(ctx context.Context) (finished bool, err error) {
	select {
	case <-r.checked:
		return r.finished, r.checkErr
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// follow adds the events of the run until it has ended. The run may end without an event that arrives here: the row of
// the run says so as well.
func (r *runFeed) follow(ctx context.Context) error {
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended, over := make(chan struct{}), false
	go func() {
		defer close(ended)
		over = r.awaitEnd(following)
		stop()
	}()
	var err error
	if r.fromNow {
		err = r.feeds.client.EventsFromNow(following, r.run, r.begin, r.add)
	} else {
		err = r.feeds.client.Events(following, r.run, r.start.Cursor(), true, r.add)
	}
	stop()
	<-ended
	if err == nil || over && ctx.Err() == nil {
		r.mu.Lock()
		from := r.seen.Cursor()
		r.mu.Unlock()
		err = r.feeds.client.Events(ctx, r.run, from, false, r.add) // what agents reported after the end of the run
	}
	if err == nil {
		return errFeedEnded
	}
	return err
}

// begin begins the feed after the newest entries.
func (r *runFeed) begin(newest client.Cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = client.PositionsAt(r.run, newest)
	r.seen = maps.Clone(r.start)
	close(r.begun)
}

// newest returns the positions after the newest event of the feed, once it has begun.
func (r *runFeed) newest(ctx context.Context) (client.Positions, error) {
	for {
		r.mu.Lock()
		changed, err := r.changed, r.err
		r.mu.Unlock()
		select {
		case <-r.begun:
			r.mu.Lock()
			defer r.mu.Unlock()
			return maps.Clone(r.seen), nil
		default:
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-r.begun:
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// awaitEnd returns true once the run has ended, and false when ctx ends.
func (r *runFeed) awaitEnd(ctx context.Context) bool {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
		if info, err := r.feeds.client.State(ctx, r.run); err == nil && info.State == client.RunFinished {
			return true
		}
	}
}

// add adds an event for all readers.
func (r *runFeed) add(e client.Event, raw []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Advance(e) // each reader drops what it has seen
	f := feedEvent{event: e, raw: bytes.Clone(raw)}
	if e.Seq > 0 && len(r.seen) <= cursorEachMax {
		f.cursor = r.seen.Text(r.run)
	}
	r.events = append(r.events, f)
	for r.size += f.bytes(); r.size > feedBytesMax && len(r.events) > 1; {
		r.size -= r.events[0].bytes()
		r.events = r.events[1:]
		r.first++
	}
	r.wake()
	return nil
}

func (e feedEvent) bytes() int { return len(e.raw) + len(e.cursor) }

func (r *runFeed) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	r.wake()
}

// wake wakes the readers that wait. The caller holds the lock.
func (r *runFeed) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// feedReader is one stream's place in a feed.
type feedReader struct {
	feed *runFeed
	next uint64 // the number of the next event
	// skip is the number before which pieces of replies are skipped: the reader may have had them before.
	skip uint64
	// cursorsMatch: the reader has seen what the feed has, so the feed's cursors are the reader's.
	cursorsMatch bool
}

// place returns a reader's place in a feed. complete: the feed has all events that follow those that the reader has
// seen; otherwise the reader must read the logs first.
func (r *runFeed) place(seen client.Positions) (p *feedReader, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p = &feedReader{feed: r, next: r.first + uint64(len(r.events))}
	p.skip = p.next
	if complete = r.first == 0 && includesAll(seen, r.start); complete {
		p.next = 0
	}
	return p, complete
}

// includesAll reports whether an observer that has seen the events of a has seen those of b.
func includesAll(a, b client.Positions) bool {
	cursor := a.Cursor()
	for at, n := range b.Cursor() {
		if cursor[at] < n {
			return false
		}
	}
	return true
}

// take returns the events that follow, or waits for one. It returns errBehind when the feed no longer has the next one,
// and the error of the feed after the last one.
func (p *feedReader) take(ctx context.Context, seen client.Positions) ([]feedEvent, error) {
	for {
		events, changed, err := p.look(seen)
		if len(events) > 0 || err != nil {
			return events, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *feedReader) look(seen client.Positions) ([]feedEvent, <-chan struct{}, error) {
	r := p.feed
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.next < r.first {
		return nil, nil, errBehind
	}
	events := slices.Clip(r.events[p.next-r.first:]) // no event is changed: readers share them
	if len(events) == 0 {
		p.cursorsMatch = p.cursorsMatch || maps.Equal(seen, r.seen)
		return nil, r.changed, r.err
	}
	p.next += uint64(len(events))
	return events, nil, nil
}
