package sim

import (
	"cmp"
	"slices"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
)

// Who waits has no shell (PROTOCOL P19). The simulator asks only the life whether
// a shell may go: that nothing of it is under way in the world is the machine's
// to know. And only the newest entry of a log and its length say whether
// somebody has to look after it: so every takeover is one of a node that has
// read no more than that.

// mayRest: the life says so, no own entry is on its way, and the clock is not due.
func (s *sim) mayRest(sh *shell) bool {
	if !s.on(Rest) || s.quiet || !sh.active() || sh.closing || sh.lease != sh.actor.lease ||
		slices.ContainsFunc(s.flights, func(f *flight) bool { return f.from == sh }) {
		return false
	}
	due, ok := sh.life.MayRest()
	return ok && (due == 0 || due > s.now)
}

// rest has a shell say that it waits; it reads no more.
func (s *sim) rest(sh *shell) {
	due, _ := sh.life.MayRest()
	for _, r := range s.runs {
		if r.shell == sh && !r.aborted {
			s.fail("%s rests, and %s is under way", sh.start, cmp.Or(r.call, "its model"))
		}
	}
	s.note("%s rests until %d", sh.start, due)
	sh.leaving, sh.released, sh.resting, sh.timers = true, true, true, nil
	s.post(sh, "released", "rest", agent.Released{Rests: true, Due: due})
}

// stands is how an actor without a shell stands by its log alone.
func (s *sim) stands(a *actor) life.Standing {
	if len(a.log) == 0 {
		return life.Standing{}
	}
	return life.Stands(a.addr, a.log[len(a.log)-1].Data, uint64(len(a.log)))
}

// wakes: an actor without a shell gets one, for nothing says that it waits, or
// what it waits for has come; or its log was hurt while it waited, and somebody
// looks at it some time.
func (s *sim) wakes(a *actor) bool {
	st := s.stands(a)
	return !st.Rests || st.Due != 0 && st.Due <= s.now || a.hurt
}

// alarm is the timer of an actor at rest.
func (s *sim) alarm(a *actor) *timer {
	if a.closed || slices.ContainsFunc(a.shells, (*shell).active) {
		return nil
	}
	st := s.stands(a)
	if !st.Rests || st.Due == 0 {
		return nil
	}
	t := &timer{"retry", st.Due}
	if w := a.shadow.agent; w != nil {
		l := w.State.Task.Limits
		if st.Due == w.State.Began+l.SoftMS || st.Due == w.State.Began+l.HardMS {
			t.name = "soft"
		}
	}
	return t
}

// retriesAtRest: it waits for the next attempt at something, and will not miss it.
func (s *sim) retriesAtRest(a *actor) bool {
	w, t := a.shadow.agent, s.alarm(a)
	if w == nil || t == nil {
		return false
	}
	return w.State.Phase == agent.Waiting && !w.State.Idle && t.due <= w.State.RetryDue ||
		slices.ContainsFunc(w.State.Calls, func(c agent.Call) bool { return c.Stage == agent.Retrying && t.due <= c.Due })
}

var rests = map[agent.Phase]Place{agent.Leasing: RestLeasing, agent.Acting: RestActing, agent.Waiting: RestWaiting}

// reachRest notes who has come to rest.
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

// reachWake notes what wakes an actor at rest.
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
