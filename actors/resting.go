package actors

import (
	"cmp"

	"github.com/google/btree"

	"github.com/troupe-run/troupe/mailbox"
)

// passivatedActors holds the passivated actors, and when each is due. Most are never due, and then the
// address is all that it holds of them.
type passivatedActors struct {
	when map[mailbox.Address]int64   // Unix milliseconds, 0: never
	due  *btree.BTreeG[passivatedAt] // those that are due at all; nil: none yet
}

type passivatedAt struct {
	at   mailbox.Address
	when int64
}

func dueBefore(a, b passivatedAt) bool {
	return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(a.at, b.at)) < 0
}

// put adds an address, or changes when it is due.
func (r *passivatedActors) put(at mailbox.Address, due int64) (added bool) {
	added = !r.drop(at)
	if r.when == nil {
		r.when = map[mailbox.Address]int64{}
	}
	r.when[at] = due
	if due != 0 {
		if r.due == nil {
			r.due = btree.NewG(32, dueBefore)
		}
		r.due.ReplaceOrInsert(passivatedAt{at, due})
	}
	return added
}

func (r *passivatedActors) drop(at mailbox.Address) (dropped bool) {
	due, known := r.when[at]
	delete(r.when, at)
	if due != 0 {
		r.due.Delete(passivatedAt{at, due})
	}
	if len(r.when) == 0 {
		r.when, r.due = nil, nil
	}
	return known
}

// nextDue is when the first of them is due; 0: never.
func (r *passivatedActors) nextDue() int64 {
	if r.due == nil {
		return 0
	}
	first, _ := r.due.Min()
	return first.when
}

// firstDue returns the first actor, if its time has come.
func (r *passivatedActors) firstDue(now int64) (mailbox.Address, bool) {
	if next := r.nextDue(); next == 0 || next > now {
		return "", false
	}
	first, _ := r.due.Min()
	return first.at, true
}
