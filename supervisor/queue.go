package supervisor

import (
	"github.com/benbjohnson/immutable"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// reservationQueue holds the requests for reservations that wait until others settle, in
// order of arrival. A waiting agent holds no reservation, so the queue cannot deadlock.
type reservationQueue struct {
	byArrival *immutable.SortedMap[uint64, *waitingRequest] // never written again
	// paused are requests of members of frozen subtrees: they wait for a person, and delay no other request.
	paused   *immutable.SortedMap[uint64, *waitingRequest]
	arrivals uint64
}

// waitingRequest is one request of one member; a member waits with at most one.
type waitingRequest struct {
	member  spec.ID
	request agent.Reserve
}

func (q reservationQueue) length() int {
	if q.byArrival == nil {
		return 0
	}
	return q.byArrival.Len()
}

// push appends a request and returns the key under which it waits.
func (q reservationQueue) push(w waitingRequest) (next reservationQueue, key uint64) {
	if q.byArrival == nil {
		q.byArrival = immutable.NewSortedMap[uint64, *waitingRequest](nil)
	}
	q.arrivals++
	q.byArrival = q.byArrival.Set(q.arrivals, &w)
	return q, q.arrivals
}

// pause keeps a request apart and returns the key under which it waits.
func (q reservationQueue) pause(w waitingRequest) (next reservationQueue, key uint64) {
	if q.paused == nil {
		q.paused = immutable.NewSortedMap[uint64, *waitingRequest](nil)
	}
	q.arrivals++
	q.paused = q.paused.Set(q.arrivals, &w)
	return q, q.arrivals
}

// eachPaused calls visit for the paused requests, in order of arrival.
func (q reservationQueue) eachPaused(visit func(waitingRequest)) {
	if q.paused == nil {
		return
	}
	for it := q.paused.Iterator(); !it.Done(); {
		_, w, _ := it.Next()
		visit(*w)
	}
}

// remove drops the request with a key, which may be paused; 0 is the key of none.
func (q reservationQueue) remove(key uint64) reservationQueue {
	if key != 0 && q.byArrival != nil {
		q.byArrival = q.byArrival.Delete(key)
	}
	if key != 0 && q.paused != nil {
		q.paused = q.paused.Delete(key)
	}
	return q
}

// find returns the request with a key.
func (q reservationQueue) find(key uint64) (w *waitingRequest, ok bool) {
	if q.byArrival != nil {
		w, ok = q.byArrival.Get(key)
	}
	if !ok && q.paused != nil {
		w, ok = q.paused.Get(key)
	}
	return w, ok
}

// waitsUpTo reports whether the request with a key is for a reservation, or for an earlier one.
func (q reservationQueue) waitsUpTo(key uint64, reservation int) bool {
	if key == 0 {
		return false
	}
	w, ok := q.find(key)
	return ok && w.request.Reservation <= reservation
}

// enqueueRequest makes a member wait with its request.
func (s State) enqueueRequest(m Member, f agent.Reserve) State {
	s.queue, m.queueKey = s.queue.remove(m.queueKey).push(waitingRequest{member: m.ID, request: f})
	return s.put(m)
}

// dropRequest drops the request with which a member waits, if there is one.
func (s State) dropRequest(m Member) State {
	if m.queueKey == 0 {
		return s
	}
	s.queue, m.queueKey = s.queue.remove(m.queueKey), 0
	return s.put(m)
}
