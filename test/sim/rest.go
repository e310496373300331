package sim

import (
	"cmp"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
)

// An actor that waits has no shell (PROTOCOL P19). A node decides from the newest entry of a log and its length
// alone whether the actor needs a shell: so every simulated takeover is by a
// node that has read no more than that.

// mayRest reports whether a node may ask the shell to passivate. The activation decides.
// The shell itself must know that none of its work is under way in the world.
func (s *sim) mayRest(sh *shell) bool {
	if !s.on(Rest) || s.quiet || !sh.active() || sh.state.Stage() != activation.Following || sh.lease != sh.actor.lease {
		return false
	}
	due, ok := sh.reader().MayPassivate()
	if !ok || due != 0 && due <= s.now {
		return false
	}
	for _, r := range s.runs {
		if r.shell == sh && !r.aborted && !sh.state.HasUnread() {
			s.fail("%s may rest, and %s is under way", sh.start, cmp.Or(r.call, "its model"))
		}
	}
	return true
}

// stands returns the standing of an actor without a shell, read from its log alone.
func (s *sim) stands(a *actor) activation.Standing {
	if len(a.log) == 0 {
		return activation.Standing{}
	}
	return activation.ReadStanding(a.addr, a.log[len(a.log)-1].Data, uint64(len(a.log)))
}

// wakes reports whether an actor without a shell gets one: its log does not say that
// it waits, or what it waits for is due; or its log was damaged while it waited, and
// some node checks it eventually.
func (s *sim) wakes(a *actor) bool {
	st := s.stands(a)
	return !st.Rests || st.Due != 0 && st.Due <= s.now || a.hurt
}

// alarm is the timer of a passivated actor.
func (s *sim) alarm(a *actor) *timer {
	if a.closed || slices.ContainsFunc(a.shells, (*shell).active) {
		return nil
	}
	st := s.stands(a)
	if !st.Rests || st.Due == 0 {
		return nil
	}
	t := &timer{name: "retry", due: st.Due}
	if w := a.shadow.agent; w != nil {
		l := w.State.Task.Limits
		if st.Due == w.State.Began+l.SoftMS || st.Due == w.State.Began+l.HardMS {
			t.name = "soft"
		}
	}
	return t
}

// retriesAtRest reports whether a passivated actor waits for its next attempt at something, and will not miss it.
func (s *sim) retriesAtRest(a *actor) bool {
	w, t := a.shadow.agent, s.alarm(a)
	if w == nil || t == nil {
		return false
	}
	return w.State.Phase == agent.Waiting && !w.State.Idle && t.due <= w.State.RetryDue ||
		slices.ContainsFunc(w.State.Calls, func(c agent.Call) bool { return c.Stage == agent.Retrying && t.due <= c.Due })
}

var rests = map[agent.Phase]Place{agent.Leasing: RestLeasing, agent.Acting: RestActing, agent.Waiting: RestWaiting}

// reachRest notes which kind of actor has passivated.
func (s *sim) reachRest(a *actor) {
	st := s.stands(a)
	switch {
	case !st.Rests:
		s.reach.hit(RestInVain)
	case a.shadow.agent == nil:
		s.reach.hit(RestSuper)
	default:
		now := &a.shadow.agent.State
		if p, ok := rests[now.Phase]; ok {
			s.reach.hit(p)
		}
		if now.Query.Query != "" {
			s.reach.hit(RestPerson)
		}
	}
}

// reachWake notes what reactivates a passivated actor.
func (s *sim) reachWake(a *actor) {
	if st := s.stands(a); st.Rests {
		s.reach.hit(WokenByClock)
	} else if w := a.shadow.agent; w != nil && w.State.Rested {
		s.reach.hit(WokenByEntry)
		if w.State.Cancel != nil {
			s.reach.hit(CancelResting)
		}
	}
}
