package sim

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
)

// handOver makes a shell drain: it reads no more, so it begins nothing more; the work that it
// began ends and enters the log, then Released.
func (s *sim) handOver() {
	sh := s.someone()
	if sh == nil || !sh.active() || sh.leaving() || sh.lease != sh.actor.lease {
		return
	}
	s.note("hand over %s", sh.start)
	s.learn(sh, activation.Drain{})
}

// reachDrained notes that an activation drained in the middle of its work.
func (s *sim) reachDrained(sh *shell) {
	st := sh.actor.shadow.agent
	if st == nil || sh.state.Stage() != activation.Draining || sh.reader().Phase != activation.Active || !s.inForce(sh) {
		return
	}
	switch st.State.Phase {
	case agent.Thinking:
		s.reach.hit(HandedOverThinking)
	case agent.Acting:
		s.reach.hit(HandedOverActing)
	}
}

// inForce reports whether the log takes a shell for the one that decides.
func (s *sim) inForce(sh *shell) bool {
	st := sh.actor.shadow.agent
	return st != nil && st.State.Life == sh.start
}

// regainOdds is how often a node that thaws takes its lease again at once, in percent.
const regainOdds = 50

// regain gives a node the lease back that it lost, as after a network outage. Meanwhile
// another node may have claimed the log: the activation must have read all entries up to
// now before it begins anything (PROTOCOL P27).
func (s *sim) regain(sh *shell) {
	a := sh.actor
	// In a recreated bucket the revision may equal the one that the lease had before. Nothing
	// tells that apart from a lease that was never lost: a known gap (ARCHITECTURE).
	if s.leases++; s.leases == sh.lease {
		s.leases++
	}
	a.lease, a.starts = s.leases, 0
	sh.lost, sh.lease, sh.proven = false, a.lease, len(a.log)
	s.note("%s holds the log again, under lease %d", sh.start, a.lease)
}
