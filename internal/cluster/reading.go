package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/mailbox"
)

// readSet is the part of the logs that a node on a shared server reads: the shards that it
// holds, and those in which it still has shells (PROTOCOL P17). A shell whose lease is lost
// must continue to read, or it would never learn that another process has claimed its log;
// and it must not act again on a log that it read with a gap.
type readSet struct {
	pools   poolList
	tails   atomic.Pointer[[]*jetstream.Part] // by pool
	isRead  []atomic.Bool                     // slots that are read; the node holds no others
	shells  []atomic.Int64                    // shells by slot, including those that are about to start
	streams []*streamShards                   // by slot; slots of one stream share its streamShards
	index   indexReader

	mu sync.Mutex // of streamShards.gained
}

// streamShards is one stream of a pool and its shards. Each stream has its own goroutine, so that a
// stream without a leader, whose server is down, does not delay the others.
type streamShards struct {
	pool   int
	first  int // slot of the pool's first shard
	slots  []int
	wakeup chan struct{} // shards were gained or lost
	gained []int         // and not processed yet
}

func newReadSet(p poolList) *readSet {
	return &readSet{pools: p, isRead: make([]atomic.Bool, p.countSlots()), shells: make([]atomic.Int64, p.countSlots())}
}

// shardNumbers are the numbers of some slots in their pool.
func (l *streamShards) shardNumbers(slots []int) []int {
	list := make([]int, len(slots))
	for i, s := range slots {
		list[i] = s - l.first
	}
	return list
}

// groupByStream creates the streamShards of all streams, once there are tails, and returns them. A retried start
// replaces the streams of the failed one, which no tail follows.
func (r *readSet) groupByStream() (all []*streamShards) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams = nil
	first := 0
	for i, pool := range r.pools {
		of := make([]*streamShards, (*r.tails.Load())[i].Streams())
		for n := range of {
			of[n] = &streamShards{pool: i, first: first, wakeup: make(chan struct{}, 1)}
		}
		for n := range pool.Shards {
			l := of[n%len(of)]
			l.slots = append(l.slots, first+n)
			r.streams = append(r.streams, l)
		}
		first += pool.Shards
		all = append(all, of...)
	}
	return all
}

// ownLogs is the logs, with a tail that reads the shards of this node.
type ownLogs struct {
	redact.Store
	post    *jetstream.Post
	reading *readSet
}

// Tail begins with no shards: they come and go with the leases.
func (o ownLogs) Tail(ctx context.Context, deliver func(mailbox.Message)) (stop func(), err error) {
	var tails []*jetstream.Part
	stop = func() {
		for _, t := range tails {
			t.Close()
		}
	}
	for _, pool := range o.reading.pools {
		t, err := o.post.Part(ctx, pool.Name, deliver)
		if err != nil {
			stop()
			return nil, err
		}
		tails = append(tails, t)
	}
	o.reading.tails.Store(&tails)
	return stop, nil
}

// streamReader reads the streams of the shards that an Owner holds.
type streamReader struct{ *Owner }

// applyLeases applies gained and lost leases.
func (o streamReader) applyLeases(gained, lost []int) {
	r := o.reading
	r.mu.Lock()
	for _, s := range gained {
		r.streams[s].gained = append(r.streams[s].gained, s)
	}
	r.mu.Unlock()
	for _, s := range slices.Concat(gained, lost) {
		r.streams[s].wakeReader()
	}
	for _, s := range lost {
		o.reportReadability(s, nil)
	}
}

// retakeAll has the runs of all shards that are read taken up again.
func (r *readSet) retakeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, l := range r.streams {
		if r.isRead[s].Load() {
			l.gained = append(l.gained, s)
			l.wakeReader()
		}
	}
}

func (l *streamShards) wakeReader() {
	select {
	case l.wakeup <- struct{}{}:
	default: // a wake-up is already pending
	}
}

const (
	followPause   = time.Second
	attachTimeout = 5 * time.Second // of one attempt to read shards of a stream
)

// followStream reads the gained shards of a stream and then has their unfinished runs taken up,
// with retries; it stops reading lost shards once they have no shell left.
func (o streamReader) followStream(l *streamShards) {
	due := map[int]struct{}{} // gained, and not passed on to the shardTakeover yet
	var again <-chan time.Time
	for {
		select {
		case <-o.cfg.Life.Done():
			return
		case <-l.wakeup:
		case <-again:
		}
		err := o.attachShards(l, due)
		for s := range due {
			if o.reading.isRead[s].Load() {
				o.taking.startTakeover(s)
				delete(due, s)
			}
		}
		if err != nil && o.cfg.Life.Err() == nil {
			o.cfg.Logger.Warn("cannot read shards of a stream; retrying", "pool", o.pools[l.pool].Name,
				"shards", l.shardNumbers(l.slots), "error", err)
		}
		again = nil
		if o.detachShards(l) || err != nil {
			again = time.After(followPause)
		}
	}
}

// attachShards reads all shards of a stream that are held and adds to due those that are
// newly held. The tail comes first, then the claims of the shells (PROTOCOL P17).
func (o streamReader) attachShards(l *streamShards, due map[int]struct{}) error {
	r := o.reading
	r.mu.Lock()
	for _, s := range l.gained {
		due[s] = struct{}{}
	}
	l.gained = nil
	r.mu.Unlock()
	held := o.keeper.Load().HeldShards()
	var fresh []int
	for _, s := range l.slots {
		if !r.isRead[s].Load() && slices.Contains(held, s) {
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(o.cfg.Life, attachTimeout)
	defer cancel()
	err := (*r.tails.Load())[l.pool].Add(ctx, l.shardNumbers(fresh)...)
	for _, s := range fresh {
		if err != nil { // their stream has no leader
			o.reportReadability(s, err)
			continue
		}
		r.isRead[s].Store(true)
		o.reportReadability(s, nil)
		due[s] = struct{}{}
	}
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// detachShards stops reading the shards of a stream that this node no longer holds and that have
// no shell left; more reports whether some of them still have one.
func (o streamReader) detachShards(l *streamShards) (more bool) {
	held, r := o.keeper.Load().HeldShards(), o.reading
	var over []int
	for _, s := range l.slots {
		if !r.isRead[s].Load() || slices.Contains(held, s) {
			continue
		}
		// In this order: a shell that is about to start is counted before it asks
		// whether the shard is held.
		r.isRead[s].Store(false)
		if r.shells[s].Load() > 0 {
			r.isRead[s].Store(true)
			more = true
			continue
		}
		over = append(over, s)
	}
	(*r.tails.Load())[l.pool].Remove(l.shardNumbers(over)...)
	return more
}
