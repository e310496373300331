package throttle

import "github.com/benbjohnson/immutable"

// queue holds the waiting requests: one lane for each run, in the order of asking, and the
// lanes are served in turn. So a run with one agent waits for one call of each other run, not
// for all of them.
type queue struct {
	arrival uint64
	turn    uint64
	lanes   *immutable.SortedMap[string, lane] // by run
	ring    *immutable.SortedMap[uint64, string]
	places  *immutable.Map[string, place] // by caller
	held    *immutable.SortedMap[uint64, string]
}

// lane holds the waiting requests of one run.
type lane struct {
	turn  uint64 // its place in the ring
	waits *immutable.SortedMap[uint64, wait]
}

type wait struct {
	who, call, run string
	tokens         int64
	held           bool
	since          int64
}

type place struct {
	run string
	n   uint64
}

func newQueue() queue {
	return queue{lanes: immutable.NewSortedMap[string, lane](nil), ring: immutable.NewSortedMap[uint64, string](nil),
		places: immutable.NewMap[string, place](nil), held: immutable.NewSortedMap[uint64, string](nil)}
}

// with returns the queue with a request appended to the lane of its run.
func (q queue) with(w wait) queue {
	l, ok := q.lanes.Get(w.run)
	if !ok {
		q.turn++
		l = lane{turn: q.turn, waits: immutable.NewSortedMap[uint64, wait](nil)}
		q.ring = q.ring.Set(l.turn, w.run)
	}
	q.arrival++
	l.waits = l.waits.Set(q.arrival, w)
	q.lanes = q.lanes.Set(w.run, l)
	q.places = q.places.Set(w.who, place{w.run, q.arrival})
	if w.held {
		q.held = q.held.Set(q.arrival, w.who)
	}
	return q
}

// without returns the queue without the request of a caller.
func (q queue) without(who string) queue {
	p, ok := q.places.Get(who)
	if !ok {
		return q
	}
	q.places = q.places.Delete(who)
	q.held = q.held.Delete(p.n)
	l, _ := q.lanes.Get(p.run)
	l.waits = l.waits.Delete(p.n)
	if l.waits.Len() == 0 {
		q.lanes, q.ring = q.lanes.Delete(p.run), q.ring.Delete(l.turn)
		return q
	}
	q.lanes = q.lanes.Set(p.run, l)
	return q
}

// first returns the request whose turn it is.
func (q queue) first() (wait, bool) {
	it := q.ring.Iterator()
	_, run, ok := it.Next()
	if !ok {
		return wait{}, false
	}
	l, _ := q.lanes.Get(run)
	waits := l.waits.Iterator()
	_, w, _ := waits.Next()
	return w, true
}

// served returns the queue without the request that had its turn; its run becomes the last in
// the ring.
func (q queue) served(w wait) queue {
	q = q.without(w.who)
	l, ok := q.lanes.Get(w.run)
	if !ok {
		return q
	}
	q.ring = q.ring.Delete(l.turn)
	q.turn++        //mutant:turn-advances
	l.turn = q.turn //mutant:run-takes-turn
	q.ring = q.ring.Set(l.turn, w.run)
	q.lanes = q.lanes.Set(w.run, l)
	return q
}

// oldestHeld returns the request that has waited longest with a reservation.
func (q queue) oldestHeld() (wait, bool) {
	it := q.held.Iterator()
	n, who, ok := it.Next()
	if !ok {
		return wait{}, false
	}
	p, _ := q.places.Get(who)
	l, _ := q.lanes.Get(p.run)
	w, ok := l.waits.Get(n)
	return w, ok
}

func (q queue) len() int { return q.places.Len() }
