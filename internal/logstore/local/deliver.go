package local

import (
	"context"
	"fmt"
	"sync"

	"github.com/troupe-run/troupe/mailbox"
)

const (
	// deliveriesMax is how many written batches may wait to be answered and delivered.
	deliveriesMax = 4
	// atOnceMax is the largest batch that the writer itself answers: for a few operations, the
	// other goroutine would take longer to wake up.
	atOnceMax = 8
	// tailMessagesMax is how many messages may wait for a tail. A slower tail holds up the
	// deliveries, and after deliveriesMax batches the write-ahead log.
	tailMessagesMax = 64 << 10
)

// delivery is a batch that was written, or whose operations were all answered with an error.
type delivery struct {
	ops   []operation
	whole *[]operation // the slice that ops is a part of
	last  bool         // ops is the last part of it
}

// deliver answers a batch and gives its entries to the tails.
func (s *Store) deliver(d delivery) {
	if s.pending.Load() == 0 && len(d.ops) <= atOnceMax {
		s.finish(d)
		return
	}
	s.pending.Add(1)
	s.deliveries <- d
}

// runDeliveries delivers until the writer has ended.
func (s *Store) runDeliveries() {
	for d := range s.deliveries {
		s.finish(d)
		s.pending.Add(-1)
	}
}

func (s *Store) finish(d delivery) {
	for i := range d.ops {
		if op := &d.ops[i]; op.value != nil {
			op.answer(op.place, nil)
		}
	}
	s.tailsMu.Lock()
	tails := s.tails
	s.tailsMu.Unlock()
	for _, t := range tails {
		t.push(d.ops)
	}
	if d.last {
		clear(*d.whole)
		*d.whole = (*d.whole)[:0]
		s.batches.Put(d.whole)
	}
}

// tailReader is one reader of what is appended. It has a goroutine of its own.
type tailReader struct {
	from  uint64 // the first place that it reads
	mu    sync.Mutex
	some  *sync.Cond // there are messages, there is room for more, or the tail has ended
	queue []mailbox.Message
	ended bool
}

// push adds the entries of a batch. It waits while the tail has too many.
func (t *tailReader) push(ops []operation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) >= tailMessagesMax && !t.ended {
		t.some.Wait()
	}
	if t.ended {
		return
	}
	wake := len(t.queue) == 0
	for i := range ops {
		if op := &ops[i]; op.stored && !op.purges && op.place >= t.from {
			t.queue = append(t.queue, messageOf(op.to, op.place, readValue(op.value)))
		}
	}
	if wake && len(t.queue) > 0 {
		t.some.Broadcast()
	}
}

// take waits for messages and takes all of them in exchange for an empty slice. It returns none
// once the tail has ended.
func (t *tailReader) take(empty []mailbox.Message) []mailbox.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) == 0 && !t.ended {
		t.some.Wait()
	}
	if t.ended {
		return nil
	}
	batch := t.queue
	t.queue = empty
	if len(batch) >= tailMessagesMax {
		t.some.Broadcast()
	}
	return batch
}

func (t *tailReader) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.some.Broadcast()
}

func (t *tailReader) hasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

func (t *tailReader) run(deliver func(mailbox.Message)) {
	var spare []mailbox.Message
	for {
		batch := t.take(spare)
		if batch == nil {
			return
		}
		for i := range batch {
			if t.hasEnded() {
				return
			}
			deliver(batch[i])
		}
		clear(batch)
		spare = batch[:0]
	}
}

// Tail implements mailbox.Post. Messages come in the order of their places.
func (s *Store) Tail(ctx context.Context, deliver func(mailbox.Message)) (func(), error) {
	if s.isClosing() {
		return nil, fmt.Errorf("local: tail: %w", mailbox.ErrClosed)
	}
	t := &tailReader{}
	t.some = sync.NewCond(&t.mu)
	s.addTail(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.run(deliver)
	}()
	end := func() {
		s.removeTail(t)
		t.end()
	}
	unhook := context.AfterFunc(ctx, end)
	return func() {
		unhook()
		end()
		<-ended
	}, nil
}

// addTail adds a tail, which begins after what is visible now: deliveries that are under way may
// be of entries before that.
func (s *Store) addTail(t *tailReader) {
	s.tailsMu.Lock()
	defer s.tailsMu.Unlock()
	t.from = s.lastVisible() + 1
	s.tails = append(s.tails[:len(s.tails):len(s.tails)], t)
}

func (s *Store) removeTail(t *tailReader) {
	s.tailsMu.Lock()
	defer s.tailsMu.Unlock()
	var left []*tailReader
	for _, other := range s.tails {
		if other != t {
			left = append(left, other)
		}
	}
	s.tails = left
}
