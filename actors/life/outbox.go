package life

import (
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// Limits of an outbox.
const (
	ReceiversAtOnce = 256       // receivers with a letter in flight
	bundleBytesMax  = 160 << 10 // of letters that share an entry
	bundleMax       = 64        // letters that share an entry
)

// Outbox holds the letters of an actor until they are acknowledged. To one
// receiver one entry is in flight at a time, so that letters arrive in order;
// different receivers go in parallel. Letters that wait for the same receiver
// share an entry.
type Outbox struct {
	lanes  map[mailbox.Address]*lane
	ready  []mailbox.Address // lanes with letters and none in flight, in order of arrival
	flying int
	open   []openEntry // entries with letters that are not out, and all after them
	floor  uint64
}

type lane struct {
	queue  []Letter
	flying int // letters at the head of the queue that are in flight
	listed bool
}

type openEntry struct {
	n    uint64
	left int
}

// Put takes the letters of entry n, of which none was put before.
func (o *Outbox) Put(n uint64, letters []Letter) {
	if len(letters) == 0 && len(o.open) == 0 {
		o.floor = n
		return
	}
	o.open = append(o.open, openEntry{n, len(letters)})
	for _, t := range letters {
		if o.lanes == nil {
			o.lanes = map[mailbox.Address]*lane{}
		}
		l := o.lanes[t.To]
		if l == nil {
			l = &lane{}
			o.lanes[t.To] = l
		}
		l.queue = append(l.queue, t)
		o.list(t.To, l)
	}
	o.sink()
}

func (o *Outbox) list(to mailbox.Address, l *lane) {
	if !l.listed && l.flying == 0 && len(l.queue) > 0 { //mutant:two-in-flight
		l.listed = true
		o.ready = append(o.ready, to)
	}
}

// Forget drops letters of entries up to n, which a claim in the log says are
// out. It is for a life that folds: none of them is in flight.
func (o *Outbox) Forget(n uint64) {
	if len(o.open) == 0 || o.open[0].n > n {
		return
	}
	for to, l := range o.lanes {
		if l.flying > 0 {
			continue
		}
		l.queue = slices.DeleteFunc(l.queue, func(t Letter) bool {
			if t.N > n {
				return false
			}
			o.out(t.N)
			return true
		})
		if len(l.queue) == 0 && !l.listed { // a listed lane is still in ready //mutant:forgotten-lane-listed-twice
			delete(o.lanes, to)
		}
	}
	o.sink()
}

// Take begins the flight of what waits for one receiver, if any may go. held
// lets letters go that could wait for company.
func (o *Outbox) Take(held bool) (to mailbox.Address, letters []Letter, ok bool) {
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
			o.unlist(i)
			i--
			continue
		}
		if !held && !slices.ContainsFunc(l.queue, func(t Letter) bool { return !t.Hold }) {
			continue
		}
		o.unlist(i)
		l.listed = false
		l.flying = bundle(l.queue)
		o.flying++
		return to, l.queue[:l.flying:l.flying], true
	}
	return "", nil, false
}

// unlist takes a receiver from the list. Mostly it is the first: of 10,000 that
// wait none is moved.
func (o *Outbox) unlist(i int) {
	if i == 0 {
		o.ready = o.ready[1:]
		return
	}
	o.ready = slices.Delete(o.ready, i, i+1)
}

func bundle(queue []Letter) int {
	bytes := 0
	for i, t := range queue {
		bytes += len(t.Body)
		if i > 0 && (bytes > bundleBytesMax || i >= bundleMax) {
			return i
		}
	}
	return len(queue)
}

// Held reports whether letters wait only for company.
func (o *Outbox) Held() bool { return len(o.ready) > 0 && o.flying < ReceiversAtOnce }

// Acked ends the flight to a receiver: its letters are out.
func (o *Outbox) Acked(to mailbox.Address) {
	l := o.lanes[to]
	if l == nil || l.flying == 0 {
		return
	}
	for _, t := range l.queue[:l.flying] {
		o.out(t.N)
	}
	l.queue = l.queue[l.flying:]
	l.flying = 0
	o.flying--
	if len(l.queue) == 0 {
		delete(o.lanes, to)
	} else {
		o.list(to, l) //mutant:blind-lane-stays-asleep
	}
	o.sink()
}

func (o *Outbox) out(n uint64) {
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

// sink raises the floor over the entries whose letters are all out.
func (o *Outbox) sink() {
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

// Floor is the highest entry such that the letters of all entries up to it are out.
func (o *Outbox) Floor() uint64 { return o.floor } //mutant:floor-too-high

// Empty reports whether nothing waits and nothing is in flight.
func (o *Outbox) Empty() bool { return len(o.open) == 0 }
