package jetstream

import (
	"cmp"
	"time"

	"github.com/google/btree"
)

// dueAppends holds the appends in flight by the time of their next copy. Those that are due at the same
// time come in the order in which they were made. The zero value is empty.
type dueAppends struct {
	byTime *btree.BTreeG[*pendingAppend] // nil: none yet
}

func dueBefore(a, b *pendingAppend) bool {
	return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.token, b.token)) < 0
}

// schedule adds an append, or changes when it is due.
func (d *dueAppends) schedule(l *pendingAppend, at time.Time) {
	d.remove(l)
	if d.byTime == nil {
		d.byTime = btree.NewG(32, dueBefore)
	}
	l.due = at
	d.byTime.ReplaceOrInsert(l)
}

func (d *dueAppends) remove(l *pendingAppend) {
	if d.byTime != nil {
		d.byTime.Delete(l)
	}
}

// next is when the first of them is due.
func (d *dueAppends) next() (time.Time, bool) {
	if d.byTime == nil || d.byTime.Len() == 0 {
		return time.Time{}, false
	}
	first, _ := d.byTime.Min()
	return first.due, true
}

// removeDue removes and returns, in order, the appends that are due at a time or earlier.
func (d *dueAppends) removeDue(at time.Time) []*pendingAppend {
	var late []*pendingAppend
	for next, ok := d.next(); ok && !next.After(at); next, ok = d.next() {
		first, _ := d.byTime.DeleteMin()
		late = append(late, first)
	}
	return late
}

// all returns the appends in order.
func (d *dueAppends) all() []*pendingAppend {
	var all []*pendingAppend
	if d.byTime != nil {
		d.byTime.Ascend(func(l *pendingAppend) bool { all = append(all, l); return true })
	}
	return all
}
