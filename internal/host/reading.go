package host

import (
	"context"
	"fmt"
	"maps"
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

	mu     sync.Mutex
	gained []int // and not looked at yet
}

func newReading(p pools) *reading {
	return &reading{pools: p, open: make([]atomic.Bool, p.slots()), alive: make([]atomic.Int64, p.slots())}
}

// each calls do for every pool that has some of these slots, with the numbers of
// its shards.
func (p pools) each(slots []int, do func(pool int, shards []int) error) error {
	first := 0
	for i, pool := range p {
		var shards []int
		for _, s := range slots {
			if s >= first && s < first+pool.Shards {
				shards = append(shards, s-first)
			}
		}
		first += pool.Shards
		if len(shards) > 0 {
			if err := do(i, shards); err != nil {
				return err
			}
		}
	}
	return nil
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
func (h *Host) changed(gained, _ []int) {
	r := h.holding.reading
	r.mu.Lock()
	r.gained = append(r.gained, gained...)
	r.mu.Unlock()
	select {
	case h.holding.moved <- struct{}{}:
	default: // it is looked for them anyway
	}
}

const followPause = time.Second

// follow reads what was gained and then takes up its unfinished runs, until
// they are found; and it stops reading what was lost, once no shell is left.
func (h *Host) follow() {
	due := map[int]struct{}{} // gained, and their runs not taken up
	taking := attempts{first: openTimeout, most: takeUpMost}
	var again <-chan time.Time
	for {
		select {
		case <-h.life.Done():
			return
		case <-h.holding.moved:
		case <-again:
		}
		err := h.attach(due)
		if err == nil && len(due) > 0 {
			take := func(ctx context.Context) error { return h.takeUp(ctx, slices.Sorted(maps.Keys(due))) }
			if err = taking.try(h.life, take); err == nil {
				clear(due)
			}
		}
		if err != nil && h.life.Err() == nil {
			h.cfg.Logger.Warn("unfinished runs were not taken up; it is tried again", "error", err)
		}
		again = nil
		if h.detach() || err != nil {
			again = time.After(followPause)
		}
	}
}

// attach reads all shards that are held and adds to due those that are newly
// held. The tail comes first, then the claims of the shells (PROTOCOL P17).
func (h *Host) attach(due map[int]struct{}) error {
	k, r := h.holding.keeper.Load(), h.holding.reading
	r.mu.Lock()
	for _, s := range r.gained {
		due[s] = struct{}{}
	}
	r.gained = nil
	r.mu.Unlock()
	var fresh []int
	for _, s := range k.Held() {
		if !r.open[s].Load() {
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(h.life, openTimeout)
	defer cancel()
	err := r.pools.each(fresh, func(pool int, shards []int) error { return (*r.tails.Load())[pool].Add(ctx, shards...) })
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	for _, s := range fresh {
		r.open[s].Store(true)
		due[s] = struct{}{}
	}
	return nil
}

// detach stops reading what is not held any more and has no shell; more says
// that some of it has one still.
func (h *Host) detach() (more bool) {
	k, r := h.holding.keeper.Load(), h.holding.reading
	held := k.Held()
	var over []int
	for s := range r.open {
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
	_ = r.pools.each(over, func(pool int, shards []int) error { // it has no errors
		(*r.tails.Load())[pool].Remove(shards...)
		return nil
	})
	return more
}
