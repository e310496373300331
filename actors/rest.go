package actors

import (
	"maps"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Who waits holds no shell (PROTOCOL P19). After a while without an entry the
// router asks a shell whether it may go. One that has nothing under way reads no
// more, as in a hand-over, and appends Released with the time at which it must
// be woken at the latest. Once that has come round, with nothing before it that
// was not stepped and nothing after it, the shell is gone and the address is at
// rest. The next entry, or the time, starts a shell as after a crash: it claims,
// reads the log, and finds in it that nothing was lost.

// LingerDefault is how long a shell stays after its newest entry.
const LingerDefault = time.Minute

// Pace of the router's looking around.
const (
	sweepsALinger = 4                     // how often it looks for shells that may go
	sweepPauseMin = time.Millisecond      // between two looks
	restsAtOnce   = 256                   // shells that are asked at one look: each that goes appends an entry
	sweepAgain    = 20 * time.Millisecond // after a look that did not ask all
	askPause      = time.Second           // before a supervisor at rest is woken that is to ask its members
	shrinkMin     = 256                   // shells there must have been
	shrinkBelow   = 4                     // a part of them, that are left
	tidyPause     = 15 * time.Second      // between two looks at those who are at rest
	wakesAtOnce   = 256                   // who are due at the same time: each that wakes reads its log and appends a claim
	wakeAgain     = 20 * time.Millisecond // after a look that did not wake all
)

type (
	// sweep: look for shells that may go.
	sweep struct{}
	// rest asks a shell to go, if it may; early: sooner than it would, because runs
	// are queued.
	rest struct{ early bool }
	// rested: the shell has nothing to do before the next entry after its
	// Released at this place, or before due.
	rested struct {
		at    mailbox.Address
		pid   *actor.PID
		place uint64
		due   int64
	}
	// asleep: the log says that its actor is at rest.
	asleep struct {
		at  mailbox.Address
		due int64
	}
	// alarm: somebody at rest may be due.
	alarm struct{}
	// nothing is for those who are not there.
	nothing struct{}
	// tidy: look for logs at rest that others hold by now.
	tidy struct{}
)

// Asleep tells the node of an actor that is at rest by its log: see life.Stands.
// It is woken when due, in Unix milliseconds, and by its next entry anyway.
func (n *Node) Asleep(at mailbox.Address, due int64) { n.system.Root.Send(n.router, asleep{at, due}) }

// lookAround begins the looks, which go on while there are shells.
func (r *router) lookAround(c actor.Context) {
	if r.sweeper == nil {
		r.sweeper = r.after(c, max(r.cfg.Linger/sweepsALinger, sweepPauseMin), sweep{})
	}
}

// after sends the router a message after a pause.
func (r *router) after(c actor.Context, pause time.Duration, message any) *time.Timer {
	self, root := c.Self(), c.ActorSystem().Root
	return time.AfterFunc(pause, func() { root.Send(self, message) })
}

func (r *router) stopTimers() {
	for _, t := range []*time.Timer{r.sweeper, r.tidier, r.alarmer} {
		if t != nil {
			t.Stop()
		}
	}
}

// sweep asks the shells that have read nothing for a while.
func (r *router) sweep(c actor.Context) {
	now, asked := time.Now(), 0
	for _, p := range r.shells {
		if p.pid == nil || p.silent || p.detached || len(p.elders) > 0 || now.Sub(p.touched) < r.cfg.Linger {
			continue
		}
		if asked++; asked > restsAtOnce {
			break
		}
		p.touched = now
		c.Send(p.pid, rest{})
	}
	r.shrink()
	switch {
	case len(r.shells) == 0:
		r.sweeper = nil
	case asked > restsAtOnce:
		r.sweeper = r.after(c, sweepAgain, sweep{})
	default:
		r.sweeper = nil
		r.lookAround(c)
	}
}

// shrink gives back the memory of shells that have gone: a map keeps room for as
// many entries as it ever had.
func (r *router) shrink() {
	r.most = max(r.most, len(r.shells))
	if r.most < shrinkMin || len(r.shells) > r.most/shrinkBelow {
		return
	}
	r.most = len(r.shells)
	r.shells, r.pids = anew(r.shells), anew(r.pids)
}

func anew[K comparable, V any](old map[K]V) map[K]V {
	m := make(map[K]V, len(old))
	maps.Copy(m, old)
	return m
}

// IgnoreDeadLetterLogging keeps the library from counting it as lost.
func (nothing) IgnoreDeadLetterLogging() {}

// unlink makes the id of a shell that is gone forget it. The library keeps ids of
// former children, and an id keeps what it led to until it is used again.
func unlink(c actor.Context, gone *actor.PID) { c.Send(gone, nothing{}) }

// rested lets a shell go. If something has come after it read its last entry,
// another one is started at once.
func (r *router) rested(c actor.Context, m rested) {
	p := r.shells[m.at]
	if p == nil || p.pid != m.pid {
		return
	}
	c.Stop(m.pid)
	r.released(m.pid)
	r.vacate(m.at, p)
	switch {
	case r.shells[m.at] != nil: // an elder has work under way
	case p.head > m.place:
		r.find(c, m.at)
	default:
		r.lie(c, asleep{m.at, m.due})
	}
}

// asleep hears from outside that an actor is at rest. What was read for that may
// be older than what the router knows by now: of two times the earlier one counts.
func (r *router) asleep(c actor.Context, m asleep) {
	if due := r.resting.when[m.at]; due != 0 && (m.due == 0 || due < m.due) {
		m.due = due
	}
	r.lie(c, m)
}

// lie notes who is at rest. Nothing is kept of it but when it is due.
func (r *router) lie(c actor.Context, m asleep) {
	_, gone := r.gone[m.at]
	if _, holds := r.cfg.Holds(m.at); !holds || gone || r.shells[m.at] != nil || r.leaves(m.at) != nil {
		return
	}
	if r.resting.put(m.at, m.due) {
		r.cfg.Resting(m.at, +1)
	}
	r.setAlarm(c)
	r.tidyLater(c)
}

func (r *router) tidyLater(c actor.Context) {
	if r.tidier == nil && len(r.resting.when) > 0 {
		r.tidier = r.after(c, tidyPause, tidy{})
	}
}

// tidy forgets logs at rest whose lease has run out: whoever holds them wakes them.
func (r *router) tidy(c actor.Context) {
	for at := range r.resting.when {
		if _, holds := r.cfg.Holds(at); !holds {
			r.awake(at)
		}
	}
	r.tidier = nil
	r.tidyLater(c)
}

// awake forgets that an address is at rest.
func (r *router) awake(at mailbox.Address) {
	if r.resting.drop(at) {
		r.cfg.Resting(at, -1)
	}
}

// setAlarm arms the one timer of all who are at rest.
func (r *router) setAlarm(c actor.Context) {
	next := r.resting.next()
	if next == 0 || r.alarmer != nil && r.alarmAt <= next {
		return
	}
	if r.alarmer != nil {
		r.alarmer.Stop()
	}
	r.alarmAt = next
	r.alarmer = r.after(c, max(time.Until(time.UnixMilli(next)), timerPauseMin), alarm{})
}

// alarm wakes those who are due. Those whose logs are held by others by now are
// theirs to wake.
func (r *router) alarm(c actor.Context) {
	r.alarmer = nil
	now := time.Now()
	for range wakesAtOnce {
		at, ok := r.resting.due(now.UnixMilli())
		if !ok {
			r.setAlarm(c)
			return
		}
		r.awake(at)
		r.find(c, at)
	}
	// After a night without a node all may be due: messages of others come in between.
	r.alarmAt, r.alarmer = now.UnixMilli(), r.after(c, wakeAgain, alarm{})
}

// rest goes, if nothing is under way: from here on nothing is stepped.
func (s *shell) rest(c actor.Context, m rest) {
	due, ok := s.life.MayRest()
	if soon := time.Now().Add(askPause).UnixMilli(); s.super != nil && due > 0 && due < soon {
		due = soon // it has nothing else to do: the next activation asks
	}
	if !ok || m.early && s.super != nil && !s.super.State.IsParked() || due > 0 && due <= time.Now().UnixMilli() || !s.free() {
		return
	}
	s.frozen, s.resting, s.due = true, true, due
	for timer := range s.work.timers {
		s.work.disarm(timer)
	}
	w := s.own("released", "", agent.Released{Rests: true, Due: due})
	s.final = s.id(w)
	s.append(c, w)
}

// free: nothing of this shell is under way, nor about to be.
func (s *shell) free() bool {
	return s.replay && !s.leaving && !s.closing && s.life.Phase == life.Alive && len(s.unread) == 0 && len(s.postponed) == 0 &&
		s.proof == "" && s.work.idle() && s.holds()
}

// gone says that the shell of a log which it has given is through, or at rest.
func (s *shell) gone(c actor.Context) {
	if s.resting && !s.missed {
		c.Send(s.router, rested{s.life.Addr, c.Self(), s.last, s.due})
		return
	}
	c.Send(s.router, left{s.life.Addr, c.Self()})
}
