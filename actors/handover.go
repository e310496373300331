package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// A planned hand-over loses nothing (PROTOCOL P3, made simpler: the work is
// waited for before the log is given, instead of being finished after it). A
// shell that is frozen reads no more, so it begins nothing more; it appends
// what its models and tools still bring, then Released, and is gone. Whoever
// comes next begins what was never begun.
type (
	// handOver freezes all shells whose address matches; done is called once,
	// when they are gone. Until a review no shell of such an address starts.
	handOver struct {
		match func(mailbox.Address) bool
		done  func()
	}
	freeze struct{}
)

// leaving is a hand-over under way.
type leaving struct {
	handOver
	left int // shells that are not gone yet
	over bool
}

// HandOver lets go of all logs that match: what is under way in them comes to
// its end and into the log, and nothing new begins. done is called once, from
// another goroutine, when no shell of them is left. They may be taken again
// after Review.
func (n *Node) HandOver(match func(mailbox.Address) bool, done func()) {
	n.system.Root.Send(n.router, handOver{match, done})
}

func (r *router) handOver(c actor.Context, m handOver) {
	l := &leaving{handOver: m}
	for at, p := range r.shells {
		switch {
		case !m.match(at):
		case p.pid == nil:
			delete(r.shells, at)
		default:
			l.left++
			c.Send(p.pid, freeze{})
		}
	}
	r.leaving = append(r.leaving, l)
	l.check()
}

func (l *leaving) check() {
	if l.left <= 0 && !l.over {
		l.over = true
		go l.done()
	}
}

// leaves reports whether an address is being handed over.
func (r *router) leaves(at mailbox.Address) *leaving {
	for _, l := range r.leaving {
		if l.match(at) {
			return l
		}
	}
	return nil
}

// gaveUp counts a shell of a hand-over that is gone.
func (r *router) gaveUp(at mailbox.Address) {
	for _, l := range r.leaving {
		if l.match(at) {
			l.left--
			l.check()
		}
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
	case mailbox.Message:
		s.sawOwn(m)
		s.took(c, 1)
	case behind: // what it would have to see is not sent to it any more
		s.life.Silence()
	case worked:
		if m.start == s.life.Start {
			s.work.done(m.key)
		}
		s.append(c, m)
	case spent:
		if m.start == s.life.Start {
			s.work.done(m.key)
		}
	case posted:
		s.posted(c, m)
	case repost:
		s.append(c, m.own)
	case dismissed:
		s.life.Silence()
	default:
		return
	}
	s.release(c)
}

// sawOwn looks for own entries in what is not stepped any more.
func (s *shell) sawOwn(m mailbox.Message) {
	e, err := mailbox.Decode(m.Data)
	if err != nil || e.From != s.life.Addr || len(e.Items) == 0 {
		return // the next life says what is wrong with it
	}
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
		c.Send(s.router, left{s.life.Addr, c.Self()})
	}
}

// id names the entry of a result.
func (s *shell) id(w worked) string { return s.life.ID(w.epoch, w.start, w.kind, w.key) }
