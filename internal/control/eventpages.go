package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/troupe-run/troupe/client"
)

const (
	// keptEventsMax is how many bytes of events a node keeps between the pages of one replay, keptReplaysMax of how
	// many replays. Of a longer list the first are kept; the page after them begins with another replay.
	keptEventsMax  = 32 << 20
	keptReplaysMax = 3
	// keptEventsAge is how long events are kept without a request for them.
	keptEventsAge = time.Minute
	// replayTimeout bounds a replay, replaysMax how many go on at once after their requests have timed out.
	replayTimeout = 2 * time.Minute
	replaysMax    = 4
	// replayRetry is the pause after which a client asks again for events that are still being read.
	replayRetry = time.Second
	// replyReserve is what a request keeps of its time for the reply.
	replyReserve = 2 * time.Second
)

var errReplaying = &client.Error{Code: client.CodeLimit, Text: "the logs of the run are still being read", Hint: "ask again in a moment: the node goes on reading", Retry: replayRetry}

// eventPages keeps the events of runs that do not fit one reply, so that the next page needs no replay of all logs of
// the run, and lets the replay of a run that takes longer than a request go on until the client asks again.
type eventPages struct {
	start func(work func()) bool // runs work in a goroutine; false once the node closes
	ctx   func() context.Context // of all replays
	// panicked logs what a replay has panicked with, and the stack.
	panicked func(verb string, what any)

	mu       sync.Mutex
	kept     []keptEvents             // the oldest first
	detached map[string]*replayFlight // those whose requests have timed out
}

// keptEvents are the events after a cursor.
type keptEvents struct {
	key   string // of the run and the cursor
	rest  *eventReplay
	since time.Time
}

// replayFlight is a replay in progress, or one whose events no request has taken yet.
type replayFlight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once replay and err are set
	replay *eventReplay
	err    error
	expiry *time.Timer // forgets a detached flight; nil before. It is guarded by the lock of eventPages
}

// replayKey names the events of a run after a cursor.
func replayKey(run string, from client.Cursor) (string, error) {
	logs := maps.Clone(from)
	delete(logs, client.CursorEntries)
	raw, err := json.Marshal(logs) // sorted by key
	if err != nil {
		return "", fmt.Errorf("control: cursor: %w", err)
	}
	return run + " " + string(raw), nil
}

// advanceCursor returns the cursor after a page.
func advanceCursor(from, page client.Cursor) client.Cursor {
	next := maps.Clone(from)
	if next == nil {
		next = client.Cursor{}
	}
	maps.Copy(next, page)
	return next
}

// read returns the events of a key: those that were kept, those of a replay that an earlier request began, or those of
// a replay of its own.
func (p *eventPages) read(ctx context.Context, key string, replay func(context.Context) (*eventReplay, error)) (*eventReplay, error) {
	if t := p.find(key, time.Now()); t != nil {
		return t, nil
	}
	p.mu.Lock()
	flight := p.detached[key]
	p.mu.Unlock()
	joined := flight != nil
	if !joined {
		var err error
		if flight, err = p.begin(replay); err != nil {
			return nil, err
		}
	}
	wait := ctx
	if until, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		wait, stop = context.WithDeadline(ctx, until.Add(-replyReserve))
		defer stop()
	}
	select {
	case <-flight.done:
		p.forget(key, flight)
		if joined && flight.err == nil {
			rest := *flight.replay // joined requests share it: it is copied before it is marked
			rest.fromEarlier = true
			return &rest, nil
		}
		return flight.replay, flight.err
	case <-wait.Done():
		return nil, p.detach(key, flight)
	}
}

func (p *eventPages) begin(replay func(context.Context) (*eventReplay, error)) (*replayFlight, error) {
	ctx, cancel := context.WithTimeout(p.ctx(), replayTimeout)
	f := &replayFlight{cancel: cancel, done: make(chan struct{})}
	if !p.start(func() {
		defer close(f.done)
		defer cancel()
		f.replay, f.err = p.replayGuarded(ctx, replay)
	}) {
		cancel()
		return nil, errClosing
	}
	return f, nil
}

// replayGuarded replays, and turns a panic into an error: an entry that the reader cannot take must not end the node.
func (p *eventPages) replayGuarded(ctx context.Context, replay func(context.Context) (*eventReplay, error)) (t *eventReplay, err error) {
	defer func() {
		if what := recover(); what != nil {
			p.panicked("events", what)
			t, err = nil, errPanic
		}
	}()
	if t, err = replay(ctx); err != nil {
		return nil, err
	}
	t.sortEvents()
	return t, nil
}

// detach lets a replay go on without its request, unless too many do.
func (p *eventPages) detach(key string, f *replayFlight) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch known := p.detached[key]; {
	case known != nil && known != f:
		f.cancel() // another request reads the same
	case known == nil && !p.makeDetachedRoom():
		f.cancel()
		return errBusy
	case known == nil:
		p.detached[key] = f
		held := weak.Make(f) // a timer that was stopped may stay in memory for a while
		f.expiry = time.AfterFunc(replayTimeout+keptEventsAge, func() {
			if f := held.Value(); f != nil { // no request came meanwhile
				p.forget(key, f)
			}
		})
	}
	return errReplaying
}

// makeDetachedRoom reports whether another replay may go on without its request. A finished one whose events no request
// has taken gives way. The caller holds the lock.
func (p *eventPages) makeDetachedRoom() bool {
	if len(p.detached) < replaysMax {
		return true
	}
	for key, f := range p.detached {
		select {
		case <-f.done:
			p.drop(key, f)
			return true
		default:
		}
	}
	return false
}

func (p *eventPages) forget(key string, f *replayFlight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.detached[key] == f {
		p.drop(key, f)
	}
}

// drop forgets a detached flight. Its timer would hold the events of the replay until it fires. The caller holds the lock.
func (p *eventPages) drop(key string, f *replayFlight) {
	delete(p.detached, key)
	if f.expiry != nil {
		f.expiry.Stop()
	}
}

// find returns the kept events of a key.
func (p *eventPages) find(key string, now time.Time) *eventReplay {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropExpired(now)
	if i := slices.IndexFunc(p.kept, func(k keptEvents) bool { return k.key == key }); i >= 0 {
		return p.kept[i].rest
	}
	return nil
}

// keep keeps the rest of the events of a key for the page after a cursor; with none it only forgets the key.
func (p *eventPages) keep(key, next string, rest *eventReplay, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = slices.DeleteFunc(p.kept, func(k keptEvents) bool { return k.key == key || k.key == next })
	if rest == nil {
		return
	}
	p.kept = append(p.kept, keptEvents{next, rest, now})
	if extra := len(p.kept) - keptReplaysMax; extra > 0 {
		p.kept = slices.Delete(p.kept, 0, extra)
	}
	time.AfterFunc(keptEventsAge+time.Second, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dropExpired(time.Now())
	})
}

// dropExpired forgets the events that no client has asked for. The caller holds the lock.
func (p *eventPages) dropExpired(now time.Time) {
	p.kept = slices.DeleteFunc(p.kept, func(k keptEvents) bool { return now.Sub(k.since) > keptEventsAge })
}
