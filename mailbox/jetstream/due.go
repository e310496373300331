package jetstream

import (
	"container/heap"
	"time"
)

// dueHeap is a heap.Interface of the appends in flight. Those that are due at the same time
// come in the order in which they were made.
type dueHeap []*pendingAppend

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].token < h[j].token
}

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap) Push(x any) {
	l := x.(*pendingAppend)
	l.index = len(*h)
	*h = append(*h, l)
}

func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}

// popDue removes and returns, in order, the appends that are due at a time or earlier.
func (h *dueHeap) popDue(at time.Time) []*pendingAppend {
	var late []*pendingAppend
	for len(*h) > 0 && !(*h)[0].due.After(at) {
		late = append(late, heap.Pop(h).(*pendingAppend))
	}
	return late
}

// allAt makes all appends due at one time.
func (h *dueHeap) allAt(at time.Time) {
	for _, l := range *h {
		l.due = at
	}
	heap.Init(h)
}
