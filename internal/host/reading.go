package host

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// reading is what a node that shares the logs reads of them: the shards that it
// holds, and those in which it still has shells (PROTOCOL P17). A shell whose
// lease is lost must read on, or it would never hear that another one has
// claimed its log; and it must not act again on a log that it read with a gap.
type reading struct {
	pools pools
	tails atomic.Pointer[[]*jetstream.Part] // by pool
	open  []atomic.Bool                     // slots that are read; nothing is held that is not
	alive []atomic.Int64                    // shells by slot, those included that are about to start
	lines []*line                           // by slot; as many as there are streams are different
	index roll

	mu sync.Mutex // of what each line has gained
}

// line is one stream of a pool and its shards. Each has its own goroutine: one
// that nobody leads, for as long as its server is away, holds up no other.
type line struct {
	pool   int
	first  int // slot of the pool's first shard
	slots  []int
	moved  chan struct{} // shards were gained or lost
	gained []int         // and not looked at yet
}

func newReading(p pools) *reading {
	return &reading{pools: p, open: make([]atomic.Bool, p.slots()), alive: make([]atomic.Int64, p.slots())}
}

// shards are the numbers of some slots in their pool.
func (l *line) shards(slots []int) []int {
	list := make([]int, len(slots))
	for i, s := range slots {
		list[i] = s - l.first
	}
	return list
}

// draw makes the lines of all streams, once there are tails, and returns them.
func (r *reading) draw() (all []*line) {
	first := 0
	for i, pool := range r.pools {
		of := make([]*line, (*r.tails.Load())[i].Streams())
		for n := range of {
			of[n] = &line{pool: i, first: first, moved: make(chan struct{}, 1)}
		}
		for n := range pool.Shards {
			l := of[n%len(of)]
			l.slots = append(l.slots, first+n)
			r.lines = append(r.lines, l)
		}
		first += pool.Shards
		all = append(all, of...)
	}
	return all
}

// ours is the logs, with a tail that reads what the node holds.
type ours struct {
	cleanPost
	reading *reading
}

// Tail begins with nothing: shards come and go with the leases.
func (o ours) Tail(ctx context.Context, deliver func(mailbox.Message)) (stop func(), err error) {
	var tails []*jetstream.Part
	stop = func() {
		for _, t := range tails {
			t.Close()
		}
	}
	for _, pool := range o.reading.pools {
		t, err := o.Part(ctx, pool.Name, deliver)
		if err != nil {
			stop()
			return nil, err
		}
		tails = append(tails, t)
	}
	o.reading.tails.Store(&tails)
	return stop, nil
}

// changed follows the leases.
func (h *Host) changed(gained, lost []int) {
	r := h.holding.reading
	r.mu.Lock()
	for _, s := range gained {
		r.lines[s].gained = append(r.lines[s].gained, s)
	}
	r.mu.Unlock()
	for _, s := range slices.Concat(gained, lost) {
		r.lines[s].look()
	}
	for _, s := range lost {
		h.unreadable(s, nil)
	}
}

// lookAgain: of all that is read the runs are to be taken up again.
func (r *reading) lookAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, l := range r.lines {
		if r.open[s].Load() {
			l.gained = append(l.gained, s)
			l.look()
		}
	}
}

func (l *line) look() {
	select {
	case l.moved <- struct{}{}:
	default: // it is looked for them anyway
	}
}

const (
	followPause   = time.Second
	attachTimeout = 5 * time.Second // of one attempt to read shards of a stream
)

// follow reads what was gained of a stream and then takes up its unfinished runs,
// until they are found; and it stops reading what was lost, once no shell is left.
func (h *Host) follow(l *line) {
	due := map[int]struct{}{} // gained, and not given to those who take them up
	var again <-chan time.Time
	for {
		select {
		case <-h.life.Done():
			return
		case <-l.moved:
		case <-again:
		}
		err := h.attach(l, due)
		for s := range due {
			if h.holding.reading.open[s].Load() {
				h.holding.taking.gained(s)
				delete(due, s)
			}
		}
		if err != nil && h.life.Err() == nil {
			h.cfg.Logger.Warn("shards were not attached; it is tried again", "pool", h.holding.pools[l.pool].Name,
				"shards", l.shards(l.slots), "error", err)
		}
		again = nil
		if h.detach(l) || err != nil {
			again = time.After(followPause)
		}
	}
}

// attach reads all shards of a stream that are held and adds to due those that are
// newly held. The tail comes first, then the claims of the shells (PROTOCOL P17).
func (h *Host) attach(l *line, due map[int]struct{}) error {
	r := h.holding.reading
	r.mu.Lock()
	for _, s := range l.gained {
		due[s] = struct{}{}
	}
	l.gained = nil
	r.mu.Unlock()
	held := h.holding.keeper.Load().Held()
	var fresh []int
	for _, s := range l.slots {
		if !r.open[s].Load() && slices.Contains(held, s) {
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(h.life, attachTimeout)
	defer cancel()
	err := (*r.tails.Load())[l.pool].Add(ctx, l.shards(fresh)...)
	for _, s := range fresh {
		if err != nil { // nobody leads their stream
			h.unreadable(s, err)
			continue
		}
		r.open[s].Store(true)
		h.unreadable(s, nil)
		due[s] = struct{}{}
	}
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	return nil
}

// detach stops reading what is not held any more of a stream and has no shell; more
// says that some of it has one still.
func (h *Host) detach(l *line) (more bool) {
	held, r := h.holding.keeper.Load().Held(), h.holding.reading
	var over []int
	for _, s := range l.slots {
		if !r.open[s].Load() || slices.Contains(held, s) {
			continue
		}
		// In this order: a shell that is about to start is counted before it asks
		// whether the shard is held.
		r.open[s].Store(false)
		if r.alive[s].Load() > 0 {
			r.open[s].Store(true)
			more = true
			continue
		}
		over = append(over, s)
	}
	(*r.tails.Load())[l.pool].Remove(l.shards(over)...)
	return more
}
