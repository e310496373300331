package sim

import (
	"slices"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
)

// handOver has a shell leave in order: it reads no more, so it begins nothing
// more; what it began comes to its end and into the log, then Released.
func (s *sim) handOver() {
	sh := s.someone()
	if sh == nil || !sh.active() || sh.leaving || sh.life.Phase != life.Alive || sh.lease != sh.actor.lease {
		return
	}
	s.note("hand over %s", sh.start)
	sh.leaving, sh.timers = true, nil
}

// mayRelease: nothing of a leaving shell is under way any more, and its own
// entries are in the log.
func (s *sim) mayRelease(sh *shell) bool {
	return !slices.ContainsFunc(s.runs, func(r *run) bool { return r.shell == sh }) &&
		!slices.ContainsFunc(s.gates.asks, func(a *ask) bool { return a.shell == sh && a.call != nil }) &&
		!slices.ContainsFunc(s.flights, func(f *flight) bool { return f.from == sh && f.to == sh.actor.addr })
}

// release ends a leaving shell: once by saying so, then by being gone.
func (s *sim) release(sh *shell) {
	if !sh.released && !sh.lost && !sh.closing {
		sh.released = true
		s.post(sh, "released", "", agent.Released{})
		return
	}
	if st := sh.actor.shadow.agent; st != nil && sh.released && !sh.resting && s.inForce(sh) {
		switch st.State.Phase {
		case agent.Thinking:
			s.reach.hit(HandedOverThinking)
		case agent.Acting:
			s.reach.hit(HandedOverActing)
		}
	}
	s.note("%s is gone, in order", sh.start)
	s.kill(sh)
	if sh.resting && !sh.actor.closed {
		s.reachRest(sh.actor)
	}
}

// inForce reports whether the log takes a shell for the one that decides.
func (s *sim) inForce(sh *shell) bool {
	st := sh.actor.shadow.agent
	return st != nil && st.State.Life == sh.start
}
