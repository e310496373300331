package actors

import (
	"cmp"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/btree"

	"github.com/troupe-run/troupe/mailbox"
)

// passivatedSet holds the passivated actors, and when each is due. Most are never due, and then the
// address is all that it holds of them.
type passivatedSet struct {
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
func (r *passivatedSet) put(at mailbox.Address, due int64) (added bool) {
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

func (r *passivatedSet) drop(at mailbox.Address) (dropped bool) {
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
func (r *passivatedSet) nextDue() int64 {
	if r.due == nil {
		return 0
	}
	first, _ := r.due.Min()
	return first.when
}

// firstDue returns the first actor, if its time has come.
func (r *passivatedSet) firstDue(now int64) (mailbox.Address, bool) {
	if next := r.nextDue(); next == 0 || next > now {
		return "", false
	}
	first, _ := r.due.Min()
	return first.at, true
}

// tidyPause is the time between two checks of the passivated actors.
const tidyPause = 15 * time.Second

// passivatedActors are the passivated actors of a router, with the timers that remind it of them.
type passivatedActors struct {
	passivatedSet
	count           func(at mailbox.Address, n int) // see Config.Passivated
	tidier, alarmer *time.Timer                     // nil: not armed
	alarmAt         int64                           // when the alarmer fires
}

func (r *passivatedActors) add(c actor.Context, at mailbox.Address, due int64) {
	if r.put(at, due) {
		r.count(at, +1)
	}
	r.setAlarm(c)
	r.tidyLater(c)
}

// remove forgets that an actor is passivated.
func (r *passivatedActors) remove(at mailbox.Address) {
	if r.drop(at) {
		r.count(at, -1)
	}
}

func (r *passivatedActors) tidyLater(c actor.Context) {
	if r.tidier == nil && len(r.when) > 0 {
		r.tidier = sendAfter(c, tidyPause, tidyTick{})
	}
}

// tidy forgets passivated actors whose lease has run out: the node that holds the log wakes them.
func (r *passivatedActors) tidy(c actor.Context, holds func(mailbox.Address) (uint64, bool)) {
	for at := range r.when {
		if _, held := holds(at); !held {
			r.remove(at)
		}
	}
	r.tidier = nil
	r.tidyLater(c)
}

// setAlarm arms the one timer of all passivated actors.
func (r *passivatedActors) setAlarm(c actor.Context) {
	next := r.nextDue()
	if next == 0 || r.alarmer != nil && r.alarmAt <= next {
		return
	}
	if r.alarmer != nil {
		r.alarmer.Stop()
	}
	r.setAlarmAt(c, next, max(time.Until(time.UnixMilli(next)), timerPauseMin))
}

func (r *passivatedActors) setAlarmAt(c actor.Context, at int64, pause time.Duration) {
	r.alarmAt, r.alarmer = at, sendAfter(c, pause, alarmTick{})
}
