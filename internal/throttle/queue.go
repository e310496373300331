package throttle

import "github.com/benbjohnson/immutable"

// fairQueue holds the waiting requests: one lane for each run, in the order of asking. The lanes of one
// priority are served in turn, so a run with one agent waits for one call of each other run, not
// for all of them. Which priority has a turn, rankInTurn decides.
type fairQueue struct {
	arrival  uint64
	turn     uint64
	lanes    *immutable.SortedMap[string, runLane]                 // by run
	rings    [len(priorities)]*immutable.SortedMap[uint64, string] // by rank
	leaves   [len(priorities)]int                                  // turns that a rank leaves to others while it waits
	passed   [len(priorities)]int                                  // those that it has left since it had one
	places   *immutable.Map[string, queuePosition]                 // by caller
	reserved *immutable.SortedMap[uint64, string]
}

// runLane holds the waiting requests of one run.
type runLane struct {
	turn  uint64 // its place in the ring of its rank
	rank  int
	waits *immutable.SortedMap[uint64, waitingRequest]
}

type waitingRequest struct {
	who, call, run string
	rank           int // of its run
	tokens         int64
	reserved       bool
	since          int64
}

type queuePosition struct {
	run string
	n   uint64
}

func newQueue(l Limits) fairQueue {
	q := fairQueue{leaves: [...]int{0, l.NormalTurns, l.LowTurns},
		lanes: immutable.NewSortedMap[string, runLane](nil), places: immutable.NewMap[string, queuePosition](nil), reserved: immutable.NewSortedMap[uint64, string](nil)}
	for rank := range q.rings {
		q.rings[rank] = immutable.NewSortedMap[uint64, string](nil)
	}
	return q
}

// withRequest returns the queue with a request appended to the lane of its run.
func (q fairQueue) withRequest(w waitingRequest) fairQueue {
	l, ok := q.lanes.Get(w.run)
	if !ok {
		q.turn++
		l = runLane{turn: q.turn, rank: w.rank, waits: immutable.NewSortedMap[uint64, waitingRequest](nil)}
		q.rings[l.rank] = q.rings[l.rank].Set(l.turn, w.run)
	}
	q.arrival++
	l.waits = l.waits.Set(q.arrival, w)
	q.lanes = q.lanes.Set(w.run, l)
	q.places = q.places.Set(w.who, queuePosition{w.run, q.arrival})
	if w.reserved {
		q.reserved = q.reserved.Set(q.arrival, w.who)
	}
	return q
}

// withoutCaller returns the queue without the request of a caller.
func (q fairQueue) withoutCaller(who string) fairQueue {
	p, ok := q.places.Get(who)
	if !ok {
		return q
	}
	q.places = q.places.Delete(who)
	q.reserved = q.reserved.Delete(p.n)
	l, _ := q.lanes.Get(p.run)
	l.waits = l.waits.Delete(p.n)
	if l.waits.Len() == 0 {
		q.lanes, q.rings[l.rank] = q.lanes.Delete(p.run), q.rings[l.rank].Delete(l.turn)
		return q
	}
	q.lanes = q.lanes.Set(p.run, l)
	return q
}

// nextRequest returns the request whose turn it is.
func (q fairQueue) nextRequest() (waitingRequest, bool) {
	rank, ok := q.rankInTurn()
	if !ok {
		return waitingRequest{}, false
	}
	it := q.rings[rank].Iterator()
	_, run, _ := it.Next()
	l, _ := q.lanes.Get(run)
	waits := l.waits.Iterator()
	_, w, _ := waits.Next()
	return w, true
}

// withoutServed returns the queue without the request that had its turn; its run becomes the last in
// the ring.
func (q fairQueue) withoutServed(w waitingRequest) fairQueue {
	before, _ := q.lanes.Get(w.run)
	q = q.countTurn(before.rank).withoutCaller(w.who) //mutant:turns-are-counted
	l, ok := q.lanes.Get(w.run)
	if !ok {
		return q
	}
	q.rings[l.rank] = q.rings[l.rank].Delete(l.turn)
	q.turn++        //mutant:turn-advances
	l.turn = q.turn //mutant:run-takes-turn
	q.rings[l.rank] = q.rings[l.rank].Set(l.turn, w.run)
	q.lanes = q.lanes.Set(w.run, l)
	return q
}

// oldestReserved returns the request that has waited longest with a reservation.
func (q fairQueue) oldestReserved() (waitingRequest, bool) {
	it := q.reserved.Iterator()
	n, who, ok := it.Next()
	if !ok {
		return waitingRequest{}, false
	}
	p, _ := q.places.Get(who)
	l, _ := q.lanes.Get(p.run)
	w, ok := l.waits.Get(n)
	return w, ok
}

func (q fairQueue) len() int { return q.places.Len() }
