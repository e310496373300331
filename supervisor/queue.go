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
	arrivals  uint64
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

// remove drops the request with a key; 0 is the key of none.
func (q reservationQueue) remove(key uint64) reservationQueue {
	if key != 0 {
		q.byArrival = q.byArrival.Delete(key)
	}
	return q
}

// waitsUpTo reports whether the request with a key is for a reservation, or for an earlier one.
func (q reservationQueue) waitsUpTo(key uint64, reservation int) bool {
	if key == 0 {
		return false
	}
	w, ok := q.byArrival.Get(key)
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
