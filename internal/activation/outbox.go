package activation

import (
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// Limits of an outbox.
const (
	ReceiversAtOnce = 256       // receivers with a message in flight
	bundleBytesMax  = 160 << 10 // bytes of messages that share an entry
	bundleMax       = 64        // messages that share an entry
)

// Outbox holds the outbox messages of an actor until they are acknowledged. Each receiver has
// at most one entry in flight, so that its messages arrive in order; different receivers are
// served in parallel. Messages that wait for the same receiver share an entry.
type Outbox struct {
	lanes  map[mailbox.Address]*receiverLane
	ready  []mailbox.Address // lanes with messages and none in flight, in order of arrival
	flying int
	open   []openEntry // entries with unacknowledged messages, and all entries after them
	floor  uint64
}

type receiverLane struct {
	queue  []OutboxMessage
	flying int // messages at the head of the queue that are in flight
	listed bool
}

type openEntry struct {
	n    uint64
	left int
}

// Put adds the messages of entry n. The caller adds the messages of an entry once.
func (o *Outbox) Put(n uint64, messages []OutboxMessage) {
	if len(messages) == 0 && len(o.open) == 0 {
		o.floor = n
		return
	}
	o.open = append(o.open, openEntry{n, len(messages)})
	for _, t := range messages {
		if o.lanes == nil {
			o.lanes = map[mailbox.Address]*receiverLane{}
		}
		l := o.lanes[t.To]
		if l == nil {
			l = &receiverLane{}
			o.lanes[t.To] = l
		}
		l.queue = append(l.queue, t)
		o.listReady(t.To, l)
	}
	o.raiseFloor()
}

func (o *Outbox) listReady(to mailbox.Address, l *receiverLane) {
	if !l.listed && l.flying == 0 && len(l.queue) > 0 { //mutant:two-in-flight
		l.listed = true
		o.ready = append(o.ready, to)
	}
}

// Forget drops the messages of entries up to n, which a claim in the log reports as
// acknowledged. Only an activation that replays calls it: none of its messages is in flight.
func (o *Outbox) Forget(n uint64) {
	if len(o.open) == 0 || o.open[0].n > n {
		return
	}
	for to, l := range o.lanes {
		if l.flying > 0 {
			continue
		}
		l.queue = slices.DeleteFunc(l.queue, func(t OutboxMessage) bool {
			if t.N > n {
				return false
			}
			o.countOut(t.N)
			return true
		})
		if len(l.queue) == 0 && !l.listed { // a listed lane is still in ready //mutant:forgotten-lane-listed-twice
			delete(o.lanes, to)
		}
	}
	o.raiseFloor()
}

// Take marks the messages that wait for one receiver as in flight and returns them, if any
// may be sent. With includeHeld, it also returns messages that could wait to share an entry.
func (o *Outbox) Take(includeHeld bool) (to mailbox.Address, messages []OutboxMessage, ok bool) {
	for i := 0; i < len(o.ready); i++ {
		if o.flying >= ReceiversAtOnce {
			break
		}
		to := o.ready[i]
		l := o.lanes[to]
		if l == nil || len(l.queue) == 0 {
			if l != nil {
				l.listed = false
			}
			o.unlistReady(i)
			i--
			continue
		}
		if !includeHeld && !slices.ContainsFunc(l.queue, func(t OutboxMessage) bool { return !t.Hold }) {
			continue
		}
		o.unlistReady(i)
		l.listed = false
		l.flying = bundleSize(l.queue)
		o.flying++
		return to, l.queue[:l.flying:l.flying], true
	}
	return "", nil, false
}

// unlistReady removes a receiver from the ready list. Usually it is the first one: then none of
// the others is moved, even if 10,000 wait.
func (o *Outbox) unlistReady(i int) {
	if i == 0 {
		o.ready = o.ready[1:]
		return
	}
	o.ready = slices.Delete(o.ready, i, i+1)
}

func bundleSize(queue []OutboxMessage) int {
	bytes := 0
	for i, t := range queue {
		bytes += len(t.Body)
		if i > 0 && (bytes > bundleBytesMax || i >= bundleMax) {
			return i
		}
	}
	return len(queue)
}

// HasHeld reports, after Take(false) has returned no message, whether messages wait that only Take(true) returns.
func (o *Outbox) HasHeld() bool { return len(o.ready) > 0 && o.flying < ReceiversAtOnce }

// Acked marks the messages in flight to a receiver as acknowledged.
func (o *Outbox) Acked(to mailbox.Address) {
	l := o.lanes[to]
	if l == nil || l.flying == 0 {
		return
	}
	for _, t := range l.queue[:l.flying] {
		o.countOut(t.N)
	}
	l.queue = l.queue[l.flying:]
	l.flying = 0
	o.flying--
	if len(l.queue) == 0 {
		delete(o.lanes, to)
	} else {
		o.listReady(to, l) //mutant:blind-lane-stays-asleep
	}
	o.raiseFloor()
}

func (o *Outbox) countOut(n uint64) {
	i, ok := slices.BinarySearchFunc(o.open, n, func(e openEntry, n uint64) int {
		switch {
		case e.n < n:
			return -1
		case e.n > n:
			return 1
		}
		return 0
	})
	if ok {
		o.open[i].left--
	}
}

// raiseFloor raises the ack floor past the entries whose messages are all acknowledged.
func (o *Outbox) raiseFloor() {
	i := 0
	for i < len(o.open) && o.open[i].left == 0 {
		o.floor = o.open[i].n
		i++
	}
	if i > 0 {
		o.open = o.open[i:]
	}
	if len(o.open) == 0 {
		o.open = nil
	}
}

// Floor is the highest entry for which the messages of all entries up to it are acknowledged.
func (o *Outbox) Floor() uint64 { return o.floor } //mutant:floor-too-high

// Empty reports whether nothing waits and nothing is in flight.
func (o *Outbox) Empty() bool { return len(o.open) == 0 }
