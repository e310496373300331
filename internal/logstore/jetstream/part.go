package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/troupe-run/troupe/mailbox"
)

// Part is a tail of the shards of a pool that a node holds (PROTOCOL P17): one ordered reader
// for each stream whose shards are all held, otherwise one for each shard. Its methods may be
// called from any goroutine, but not from deliver.
type Part struct {
	pool    *streamPool
	deliver func(mailbox.Message)
	ctx     context.Context
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	streams []partStream
}

// partStream is what a Part reads of one stream. A stream without a leader keeps only its own
// lock while it waits for the answer about its end, so that no other stream waits for it.
type partStream struct {
	mu      sync.Mutex
	from    map[int]uint64 // shard → the first place to deliver
	readers map[int]*shardReader
}

// whole is the reader of all shards of a stream.
const whole = -1

// shardReader reads one shard or all of a stream. An earlier reader has delivered the entries
// before a shard's place in from.
type shardReader struct {
	*follower
	from  map[int]uint64
	leave context.CancelFunc
}

// Part makes a tail of a pool that was opened. It reads nothing yet; it calls deliver like
// Tail. It ends with ctx, with the Post, or by Close.
func (p *Post) Part(ctx context.Context, name string, deliver func(mailbox.Message)) (*Part, error) {
	pl, err := p.pools.open(ctx, p.pools.addressName(name))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &Part{pool: pl, deliver: deliver, ctx: ctx, cancel: cancel, streams: make([]partStream, len(pl.streams))}
	for n := range t.streams {
		t.streams[n].from, t.streams[n].readers = map[int]uint64{}, map[int]*shardReader{}
	}
	return t, nil
}

// Streams is how many streams the pool has: shard s is in stream s modulo Streams.
func (t *Part) Streams() int { return len(t.streams) }

// Add begins to read shards: every entry appended to them after Add returned is delivered.
// Each stream succeeds or fails separately: the error names shards for which nothing has
// changed; the shards of the other streams are read. mailbox.ErrClosed: the Part has ended.
// Shards that were read before continue.
func (t *Part) Add(ctx context.Context, shards ...int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)() // Close waits for this call
	var errs []error
	for n, of := range t.byStream(shards) {
		if err := t.addShards(ctx, n, of); err != nil {
			errs = append(errs, fmt.Errorf("jetstream: read shards %v: %w", of, err))
		}
	}
	return errors.Join(errs...)
}

// byStream groups shards by stream.
func (t *Part) byStream(shards []int) map[int][]int {
	by := map[int][]int{}
	for _, s := range shards {
		n := s % len(t.streams)
		by[n] = append(by[n], s)
	}
	return by
}

// addShards begins to read shards of one stream.
func (t *Part) addShards(ctx context.Context, n int, shards []int) error {
	s := &t.streams[n]
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ctx.Err() != nil {
		return mailbox.ErrClosed
	}
	var fresh []int
	for _, shard := range shards {
		if _, read := s.from[shard]; !read {
			fresh = append(fresh, shard)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	last, err := t.pool.streams[n].lastSequence(ctx)
	if t.ctx.Err() != nil {
		err = mailbox.ErrClosed
	}
	if err != nil {
		return err
	}
	for _, shard := range fresh {
		s.from[shard] = last + 1
	}
	t.arrangeReaders(n)
	return nil
}

// Remove stops reading shards: none of their entries is delivered after Remove returned.
func (t *Part) Remove(shards ...int) {
	for n, of := range t.byStream(shards) {
		t.removeShards(n, of)
	}
}

func (t *Part) removeShards(n int, shards []int) {
	s := &t.streams[n]
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ctx.Err() != nil {
		return
	}
	changed := false
	for _, shard := range shards {
		if _, read := s.from[shard]; read {
			delete(s.from, shard)
			changed = true
		}
	}
	if changed {
		t.arrangeReaders(n)
	}
}

// Close ends all reading and waits for the last delivery.
func (t *Part) Close() {
	t.cancel()
	// A call that holds a lock may still start readers; a call that takes it later sees the
	// canceled context. So no reader starts during the wait.
	for n := range t.streams {
		t.streams[n].mu.Lock()
		t.streams[n].mu.Unlock() //nolint:staticcheck // empty on purpose, see above
	}
	t.ended.Wait()
}

// Readers is the current number of readers.
func (t *Part) Readers() int {
	sum := 0
	for n := range t.streams {
		t.streams[n].mu.Lock()
		sum += len(t.streams[n].readers)
		t.streams[n].mu.Unlock()
	}
	return sum
}

// arrangeReaders starts and stops the readers of a stream so that they match its shards. The lock of
// the stream is held.
func (t *Part) arrangeReaders(n int) {
	s, names := &t.streams[n], t.pool.pools.cfg.Names
	all := len(s.from) == t.pool.shardsOf(n)
	for key, r := range s.readers {
		_, still := s.from[key]
		if key != whole && still && !all {
			continue
		}
		next := r.stopReader()
		delete(s.readers, key)
		for shard, from := range r.from {
			if _, read := s.from[shard]; read {
				s.from[shard] = max(from, next)
			}
		}
	}
	if all {
		t.startReader(n, whole, names.AllBoxes(), maps.Clone(s.from))
		return
	}
	for shard, from := range s.from {
		if s.readers[shard] == nil {
			t.startReader(n, shard, names.ShardSubjects(t.pool.name, shard), map[int]uint64{shard: from})
		}
	}
}

// startReader starts a reader. It delivers the same entries whether it attaches now or later.
func (t *Part) startReader(n, key int, filter string, from map[int]uint64) {
	next := uint64(0)
	for _, place := range from {
		if next == 0 || place < next {
			next = place
		}
	}
	shards := t.pool.shards
	f := t.pool.streams[n].follow([]string{filter}, next, func(m mailbox.Message) bool {
		if m.Place >= from[mailbox.Shard(m.To, shards)] {
			t.deliver(m)
		}
		return true
	})
	ctx, leave := context.WithCancel(t.ctx)
	t.streams[n].readers[key] = &shardReader{follower: f, from: from, leave: leave}
	t.ended.Go(func() {
		defer f.endDelivery()
		defer leave()
		if err := f.attachConsumer(ctx); err != nil && ctx.Err() == nil {
			t.pool.pools.cfg.Logger.Warn("reader cannot attach", "error", err)
			f.breakOff("not attached")
		}
		// The reader ends with ctx or with the Post, and the caller knows of both.
		_ = f.stayAttached(ctx, nil)
	})
}

// stopReader ends a reader, and returns the first place of its stream that it did not deliver.
func (r *shardReader) stopReader() uint64 {
	r.leave()
	r.endDelivery()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}
