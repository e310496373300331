package actors

import (
	"container/heap"

	"github.com/troupe-run/troupe/mailbox"
)

// passivatedActors holds the passivated actors, and when each is due. Most are never due, and then the
// address is all that it holds of them.
type passivatedActors struct {
	when  map[mailbox.Address]int64 // Unix milliseconds, 0: never
	queue dueHeap                   // may name actors that were woken meanwhile
}

type dueAt struct {
	at   mailbox.Address
	when int64
}

// staleMax is how many woken actors the queue may name before it is rebuilt.
const staleMax = 1024

// put adds an address, or changes when it is due.
func (r *passivatedActors) put(at mailbox.Address, due int64) (added bool) {
	if r.when == nil {
		r.when = map[mailbox.Address]int64{}
	}
	was, known := r.when[at]
	r.when[at] = due
	if due != 0 && !(known && was == due) {
		heap.Push(&r.queue, dueAt{at, due})
	}
	if len(r.queue) > len(r.when)+staleMax {
		r.queue = r.queue[:0]
		for at, when := range r.when {
			if when != 0 {
				r.queue = append(r.queue, dueAt{at, when})
			}
		}
		heap.Init(&r.queue)
	}
	return !known
}

func (r *passivatedActors) drop(at mailbox.Address) (dropped bool) {
	_, known := r.when[at]
	delete(r.when, at)
	if len(r.when) == 0 {
		r.when, r.queue = nil, nil
	}
	return known
}

// nextDue is when the first of them is due; 0: never.
func (r *passivatedActors) nextDue() int64 {
	for len(r.queue) > 0 && r.when[r.queue[0].at] != r.queue[0].when {
		heap.Pop(&r.queue)
	}
	if len(r.queue) == 0 {
		return 0
	}
	return r.queue[0].when
}

// firstDue returns the first actor, if its time has come.
func (r *passivatedActors) firstDue(now int64) (mailbox.Address, bool) {
	if next := r.nextDue(); next == 0 || next > now {
		return "", false
	}
	return r.queue[0].at, true
}

// dueHeap is a heap, the first one due on top.
type dueHeap []dueAt

func (d dueHeap) Len() int           { return len(d) }
func (d dueHeap) Less(i, j int) bool { return d[i].when < d[j].when }
func (d dueHeap) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

// Push is part of heap.Interface.
func (d *dueHeap) Push(x any) { *d = append(*d, x.(dueAt)) }

// Pop is part of heap.Interface.
func (d *dueHeap) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
