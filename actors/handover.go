package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// A planned hand-over loses nothing (PROTOCOL P3, made simpler: the work is
// waited for before the log is given, instead of being finished after it). A
// shell that is frozen steps nothing more, so it begins nothing more; it appends
// what its models and tools still bring, then Released, and is gone. Whoever
// comes next begins what was never begun.
type (
	// handOver freezes all shells whose logs match.
	handOver struct {
		name  string
		match func(at mailbox.Address, lease uint64) bool
		done  func()
	}
	freeze struct{}
)

// leaving is a hand-over, under way or over.
type leaving struct {
	handOver
	waits map[string]struct{} // ids of the shells that are not gone yet
	over  bool
}

// HandOver lets go of all logs that match, by their address and the lease under
// which this node holds them now: what is under way in them comes to its end and
// into the log, and nothing new begins. done is called once, from another
// goroutine, when no shell of them is left. None starts again under the same
// lease; under another one it does. The name says what is handed over: the next one of the name replaces it.
func (n *Node) HandOver(name string, match func(at mailbox.Address, lease uint64) bool, done func()) {
	n.system.Root.Send(n.router, handOver{name, match, done})
}

func (r *router) handOver(c actor.Context, m handOver) {
	r.leaving = slices.DeleteFunc(r.leaving, func(l *leaving) bool { return l.over && l.name == m.name })
	l := &leaving{handOver: m, waits: map[string]struct{}{}}
	r.leaving = append(r.leaving, l)
	for at, p := range r.shells {
		if r.leaves(at) != l {
			continue
		}
		for _, elder := range p.elders {
			l.waits[elder.Id] = struct{}{}
		}
		if p.pid == nil { // it waits for a restart
			r.vacate(at, p)
			continue
		}
		c.Send(p.pid, freeze{})
		l.waits[p.pid.Id] = struct{}{}
	}
	for at := range r.resting.when { // they have gone already
		if r.leaves(at) == l {
			r.awake(at)
		}
	}
	l.check()
}

func (l *leaving) check() {
	if len(l.waits) == 0 && !l.over {
		l.over = true
		go l.done()
	}
}

// leaves is the newest hand-over that an address is part of, if any.
func (r *router) leaves(at mailbox.Address) *leaving {
	lease, _ := r.cfg.Holds(at)
	for _, l := range slices.Backward(r.leaving) {
		if l.match(at, lease) {
			return l
		}
	}
	return nil
}

// released forgets a shell that is gone.
func (r *router) released(pid *actor.PID) {
	if at, ok := r.pids[pid.Id]; ok {
		r.cfg.Alive(at, -1)
	}
	delete(r.pids, pid.Id)
	for _, l := range r.leaving {
		delete(l.waits, pid.Id)
		l.check()
	}
}

// freeze stops stepping what is read. A shell that has only just begun gets
// through its log first, or its start would count as one that did not.
func (s *shell) freeze(c actor.Context) {
	if !s.replay && s.life.Phase == life.Folding {
		s.leaving = true
		return
	}
	s.frozen = true
	for timer := range s.work.timers {
		s.work.disarm(timer)
	}
	s.release(c)
}

// whileFrozen takes what a frozen shell still takes: results of its own work,
// and its own entries as they come round.
func (s *shell) whileFrozen(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Stopping:
		s.work.cancelAll()
		s.leaveGate(c)
	case mailbox.Message:
		s.sawOwn(m)
		s.took(c, 1)
	case behind:
		s.catchUpTail(c, m)
	case caught:
		for _, e := range m.log {
			s.sawOwn(e)
		}
		s.goOn(c, m)
	case worked:
		if m.start == s.life.Start {
			s.work.done(m.key)
		}
		s.append(c, m)
	case spent:
		if m.start == s.life.Start {
			s.work.done(m.key)
		}
	case unbegun: // the next activation begins it
		if m.start == s.life.Start {
			s.work.done(m.key)
		}
	case posted:
		s.posted(c, m)
	case repost:
		s.append(c, m.own)
	default:
		return
	}
	s.release(c)
}

// sawOwn looks for own entries in what is not stepped any more.
func (s *shell) sawOwn(m mailbox.Message) {
	if m.Place <= s.last {
		return
	}
	s.last = m.Place
	e, err := mailbox.Decode(m.Data)
	if err != nil || e.From != s.life.Addr || len(e.Items) == 0 {
		s.missed = true
		return // the next life says what is wrong with it
	}
	s.missed = s.missed || e.Items[0].ID != s.final
	s.cameRound(e.Items[0].ID)
	if k := e.Items[0].Kind; k == "closed" || k == "resumed" && e.Epoch.Higher(s.life.Epoch) {
		s.life.Silence() // it has ended, or somebody else is in force
	}
}

// release ends a frozen shell once all that it began is in its log, and the
// entry that says so.
func (s *shell) release(c actor.Context) {
	switch {
	case !s.work.idle():
	case s.life.Phase != life.Alive:
		c.Send(s.router, left{s.life.Addr, c.Self()})
	case len(s.unread) > 0:
	case s.final == "":
		w := s.own("released", "", agent.Released{})
		s.final = s.id(w)
		s.append(c, w)
	default: // it has come round
		s.gone(c)
	}
}

// id names the entry of a result.
func (s *shell) id(w worked) string { return s.life.ID(w.epoch, w.start, w.kind, w.key) }
