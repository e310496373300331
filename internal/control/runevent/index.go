package runevent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// indexEventsMax is how many bytes of packed events an index keeps. Of a longer run it keeps the first ones after its
	// cursor, and a reader that has read them begins another index; of a run that has grown it keeps the newest.
	indexEventsMax = 32 << 20
	// indexStatesMax is how many bytes the logs have together that an index goes on to replay where it has stopped. A log
	// beyond them is replayed from its first entry when it has grown.
	indexStatesMax = 32 << 20
	// logBytes is what a log in an index takes in memory beside its entries.
	logBytes = 512
	// readsMax is how many logs that have grown are read one by one. Of more, the whole run is read.
	readsMax = 512
	// recountsMax is how often an index reads on because logs have grown meanwhile, after it has read the end of the run.
	recountsMax = 3
	// entriesAhead is how many entries may wait for each goroutine that replays logs.
	entriesAhead = 64
)

// errRead ends a read of a log.
var errRead = errors.New("control: enough was read")

// errStale says that the logs are no longer those that an index has read: a run was deleted, and restored.
var errStale = errors.New("control: the logs of the run were replaced")

// index holds the events of a run after a cursor, with the state of each replayed log, so that the next request
// reads only what has been appended since. It is used by one goroutine at a time.
type index struct {
	cfg       Config
	run       string
	from      client.Cursor // it has the events after it
	list      list
	logs      map[mailbox.Address]*indexedLog
	first     uint64 // place of the first entry of the supervisor's log
	entries   uint64 // of all logs, when they were counted last
	updates   uint64
	guard     func(do func() error) error // turns a panic into an error
	truncated bool                        // there are more events than are in the list, and it reads no further
}

// indexedLog is a log that is replayed for its events.
type indexedLog struct {
	at     mailbox.Address
	number uint32                // in the list of events
	reader *activation.LogReader // nil: it was dropped, to free memory
	agent  *activation.Agent     // nil for a supervisor
	read   uint64                // entries
	place  uint64                // of the last one
	bytes  int                   // of the entries that the reader has read
	closed bool                  // no event follows
	update uint64                // that has read it last
}

func newIndex(cfg Config, run string, from client.Cursor, guard func(func() error) error) *index {
	x := &index{cfg: cfg, run: run, guard: guard, from: maps.Clone(from), logs: map[mailbox.Address]*indexedLog{}}
	if x.from == nil {
		x.from = client.Cursor{}
	}
	delete(x.from, client.CursorEntries)
	return x
}

// has reports whether the index has all events after a cursor.
func (x *index) has(from client.Cursor) bool {
	for at, n := range x.from {
		if from[at] < n {
			return false
		}
	}
	return true
}

// update reads on where the logs have grown. If the end of the run is among what it reads, no event before it is missing:
// logs that have grown while they were read one after the other are read again.
func (x *index) update(ctx context.Context) error {
	if x.truncated {
		return nil
	}
	x.updates++
	for range recountsMax {
		grown, unread, err := x.findGrown(ctx)
		if err != nil {
			return err
		}
		if len(grown) == 0 {
			break
		}
		r := indexReader{index: x}
		if len(grown) > readsMax || 2*unread > x.entries {
			err = r.readWhole(ctx)
		} else {
			err = r.readLogs(ctx, grown)
		}
		if err != nil {
			return err
		}
		x.list.add(r.events)
		if !r.foundEnd {
			break
		}
	}
	return x.fit()
}

// findGrown counts the entries of the logs, and returns those with more entries than were read, and how many those are.
func (x *index) findGrown(ctx context.Context) (grown []*indexedLog, unread uint64, err error) {
	counts, err := x.cfg.Store.Entries(ctx, x.run)
	if err != nil {
		return nil, 0, fmt.Errorf("control: count %s: %w", x.run, err)
	}
	if err := x.checkFirst(ctx); err != nil {
		return nil, 0, err
	}
	for at, l := range x.logs {
		if counts[at] < l.read {
			return nil, 0, errStale
		}
	}
	x.entries = 0
	for at, n := range counts {
		x.entries += n
		if l := x.log(at); n > l.read {
			grown, unread = append(grown, l), unread+n-l.read
		}
	}
	return grown, unread, nil
}

// checkFirst checks that the log of the supervisor begins with the entry with which it began.
func (x *index) checkFirst(ctx context.Context) error {
	place := uint64(0)
	err := x.cfg.Store.Read(ctx, mailbox.At(x.run, mailbox.Super), 0, x.first, func(m mailbox.Message) error {
		place = m.Place
		return errRead
	})
	switch {
	case err != nil && !errors.Is(err, errRead):
		return fmt.Errorf("control: read %s: %w", x.run, err)
	case x.first != 0 && place != x.first:
		return errStale
	}
	x.first = place
	return nil
}

// log returns a log of the index, which it adds if it is new.
func (x *index) log(at mailbox.Address) *indexedLog {
	l := x.logs[at]
	if l == nil {
		l = &indexedLog{at: at, number: uint32(len(x.list.names))} //nolint:gosec // a run has fewer logs
		x.list.names = append(x.list.names, string(at.Bare()))
		x.logs[at] = l
	}
	return l
}

// fit drops what exceeds the limits of memory.
func (x *index) fit() (err error) {
	most := math.MaxInt
	if x.updates == 1 {
		most = indexEventsMax
	}
	if x.truncated, err = x.list.pack(most); err != nil {
		return err
	}
	if x.truncated {
		x.logs = nil
		return nil
	}
	for x.list.packed > indexEventsMax {
		x.list.dropOldest(x.from)
	}
	states := 0
	for _, l := range x.logs {
		states += l.bytes
	}
	if states <= indexStatesMax {
		return nil
	}
	byUse := slices.SortedFunc(maps.Values(x.logs), func(a, b *indexedLog) int { return int(a.update) - int(b.update) }) //nolint:gosec // few updates
	for _, l := range byUse {
		if states <= indexStatesMax/2 {
			break
		}
		states -= l.bytes
		l.forget()
	}
	return nil
}

// bytes is about what the index takes in memory.
func (x *index) bytes() int {
	sum := x.list.bytes() + logBytes*len(x.list.names)
	for _, l := range x.logs {
		sum += l.bytes
	}
	return sum
}

// indexReader reads logs of a run into an index.
type indexReader struct {
	index    *index
	events   []pastEvent
	foundEnd bool // an event among them is the end of the run
}

// readLogs reads logs on, one after the other.
func (r *indexReader) readLogs(ctx context.Context, logs []*indexedLog) error {
	for _, l := range logs {
		if err := r.readLog(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (r *indexReader) readLog(ctx context.Context, l *indexedLog) error {
	after := l.place
	if l.reader == nil && !l.closed {
		after = 0
	}
	if err := r.index.cfg.Store.Read(ctx, l.at, after, 0, func(m mailbox.Message) error { return r.readEntry(l, m) }); err != nil {
		return fmt.Errorf("control: read %s: %w", l.at, err)
	}
	return nil
}

// readEntry replays the next entry of a log. Events of entries that were read before are known.
func (r *indexReader) readEntry(l *indexedLog, m mailbox.Message) error {
	x := r.index
	known := m.Place <= l.place
	if known && l.reader != nil {
		return nil // a pass over the whole run
	}
	if !known {
		l.read, l.place, l.update = l.read+1, m.Place, x.updates
	}
	if l.closed {
		return nil
	}
	if l.reader == nil {
		l.begin()
	}
	read := l.reader.Next(m)
	l.bytes += len(m.Data)
	if l.closed = l.reader.Phase == activation.Closed; l.closed {
		defer l.forget() // a pass over a run of many agents holds the states of those that have not ended
	}
	at := x.list.names[l.number]
	if known || read.N <= x.from[at] {
		return nil
	}
	parent := ""
	if l.agent != nil {
		parent = string(l.agent.State.Task.Parent)
	}
	size := 0
	for _, e := range activation.EventsOf(m.To, parent, x.cfg.Node, read.N, l.reader.At, read.Events) {
		raw, err := Encode(e)
		if err == nil && size+len(raw) > entryBytesMax {
			raw, err = EncodeWithoutTexts(e)
		}
		if err != nil {
			return err
		}
		size += len(raw)
		r.foundEnd = r.foundEnd || e.Kind == event.KindRunFinished
		r.events = append(r.events, pastEvent{mark{l.number, uint32(len(raw)), read.N}, l.reader.At, raw}) //nolint:gosec // an event has at most eventBytesMax
	}
	return nil
}

// forget drops the state of a log, to free memory.
func (l *indexedLog) forget() { l.reader, l.agent, l.bytes = nil, nil, 0 }

// begin begins the replay of a log.
func (l *indexedLog) begin() {
	l.agent, l.bytes = nil, 0
	if l.at.Agent() == mailbox.Super {
		l.reader = activation.Watch(l.at, &activation.Supervisor{Addr: l.at, Watch: true})
		return
	}
	l.agent = &activation.Agent{Addr: l.at, Watch: true}
	l.reader = activation.Watch(l.at, l.agent)
}

// unreadEntry is an entry of a log.
type unreadEntry struct {
	log   *indexedLog
	entry mailbox.Message
}

// readWhole reads all logs in one pass. The logs are replayed at the same time, each by one goroutine: the longest is
// that of the supervisor, so it has one of its own and is read beside the others.
func (r *indexReader) readWhole(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	super := mailbox.At(r.index.run, mailbox.Super)
	readers := make([]*indexReader, 1+2*runtime.GOMAXPROCS(0))
	queues := make([]chan unreadEntry, len(readers)-1)
	var working sync.WaitGroup
	work := func(i int, do func(*indexReader) error) {
		readers[i] = &indexReader{index: r.index}
		working.Go(func() {
			if err := r.index.guard(func() error { return do(readers[i]) }); err != nil {
				cancel(err)
			}
		})
	}
	if l := r.index.logs[super]; l != nil {
		work(0, func(own *indexReader) error { return own.readLog(ctx, l) })
	}
	for i := range queues {
		queue := make(chan unreadEntry, entriesAhead)
		queues[i] = queue
		work(i+1, func(own *indexReader) error {
			for e := range queue {
				if err := own.readEntry(e.log, e.entry); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := r.index.cfg.Store.ReadRun(ctx, r.index.run, func(m mailbox.Message) error {
		l := r.index.logs[m.To]
		if l == nil || m.To == super {
			return nil // the next update reads a log that is new
		}
		select {
		case queues[int(l.number)%len(queues)] <- unreadEntry{l, m}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	for _, q := range queues {
		close(q)
	}
	working.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	for _, own := range readers {
		if own != nil {
			r.events, r.foundEnd = append(r.events, own.events...), r.foundEnd || own.foundEnd
		}
	}
	if err != nil {
		return fmt.Errorf("control: read %s: %w", r.index.run, err)
	}
	return nil
}
