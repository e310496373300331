package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
)

// A node acts only on logs that it holds. The order of the log is what keeps
// two nodes from acting at once; that a node stops by itself when its lease is
// over is defence, and saves work (PROTOCOL P4).
type (
	// dismissed: the log is not held any more.
	dismissed struct{}
	// spent: work that a dismissed shell began has ended, and its result was
	// posted by the shell after it.
	spent struct{ start, key string }
)

// review dismisses the shells of logs that are not held any more.
func (r *router) review(c actor.Context) {
	r.leaving = slices.DeleteFunc(r.leaving, func(l *leaving) bool { return l.over })
	for at, p := range r.shells {
		if _, ok := r.cfg.Holds(at); ok || p.dismissed {
			continue
		}
		p.dismissed = true
		if p.pid == nil { // it waits for a restart
			delete(r.shells, at)
			continue
		}
		c.Send(p.pid, dismissed{})
	}
}

// left ends a shell that has fallen silent. Its address may be taken again.
func (r *router) left(c actor.Context, m left) {
	c.Stop(m.pid)
	delete(r.pids, m.pid.Id)
	p := r.shells[m.at]
	switch {
	case p == nil:
	case p.pid == m.pid:
		delete(r.shells, m.at)
		r.gaveUp(m.at)
	default:
		p.elders = slices.DeleteFunc(p.elders, func(e *actor.PID) bool { return e == m.pid })
	}
}

// holds reports whether the shell may still try to act.
func (s *shell) holds() bool {
	_, ok := s.cfg.Holds(s.life.Addr)
	return ok
}

// dismiss makes the shell fall silent: it decides and begins nothing more. A
// model call is given up, for nobody would read its answer; a tool comes to its
// end, and what it returned is posted as evidence.
func (s *shell) dismiss(c actor.Context) {
	s.life.Silence()
	s.work.dismiss()
	s.after(c)
}

// settled notes the end of work whose result another shell has posted.
func (s *shell) settled(c actor.Context, m spent) {
	if m.start == s.life.Start {
		s.work.done(m.key)
	}
	s.after(c)
}

// silent reports whether the shell is silent and has nothing under way.
func (s *shell) idleForGood() bool { return s.life.Phase == life.Silent && s.work.idle() }
