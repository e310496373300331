package agent

import "github.com/troupe-run/troupe/agent/spec"

// Limits count time at work. State.Began is the start of an agent's clock, moved forward by all time
// that is not work:
//
//   - while a person is asked (State.Parked, see unpark);
//   - while the agent only waits for children: their own clocks run, each within the time
//     that its parent had left when it delegated, and the working time of a child counts
//     for its parent when the child answers, so a child that is parked costs nothing;
//   - while no process had the agent: from its last entry to the claim that follows;
//   - while the machine slept past a limit: from the last entry to the next one, if a
//     timer was due between them and did not fire. So a sleep alone exhausts no limit and
//     no patience; work before the sleep, since the last entry, is not counted either.
//     A sleep that is shorter than the rest of a limit cannot be detected, and counts.
//
// All of it follows from the stamps of entries. Tasks of older rules count wall-clock time,
// except for the wait for a person.

// restGraceMS is how late the clock may wake an actor before the delay shows that
// no node was there to wake it.
const restGraceMS = 60_000

// countsWork reports whether the limits of the agent count time at work.
func (s State) countsWork() bool { return s.Task.Rules >= spec.WorkRules }

// clock is how long the agent has been at work, in milliseconds.
func (s State) clock() int64 {
	now := s.Now
	switch {
	case s.Stands:
		now = s.Stood
	case s.Query.Query != "":
		now = s.Parked
	}
	return max(0, now-s.Began)
}

// worked is the working time that the end of an agent reports; 0: it was not counted.
func (s State) worked() int64 {
	if !s.countsWork() {
		return 0
	}
	return s.Worked
}

// awaitsChildren reports whether the agent does nothing but wait for children.
func (s State) awaitsChildren() bool {
	switch {
	case s.Phase == Waiting && s.Idle:
		return len(s.Away) > 0
	case s.Phase != Acting:
		return false
	}
	return s.Calls.onlyChildrenRun()
}

// updateClock stops the clock when the agent begins to wait for children, and restarts
// it when the wait is over.
func updateClock(s State, fx []Effect) (State, []Effect) {
	waits := s.awaitsChildren()
	switch {
	case !s.countsWork() || s.Phase == "" || s.Phase == Done:
	case waits && !s.Stands: //mutant:waiting-for-children-counts
		s.Stands, s.Stood = true, s.Now
	case !waits && s.Stands:
		s.Began, s.Stands = s.Began+s.Now-s.Stood, false
		if s.Query.Query == "" {
			fx = append(fx, s.clocks()...)
		}
	}
	return s, fx
}

// credit counts the work of a child that has answered: the clock is at least its
// value when the child began, plus the time that the child has worked since.
func (s State) credit(born, worked int64) State {
	if behind := born + worked - s.clock(); s.countsWork() && worked > 0 && behind > 0 {
		s.Began -= behind
	}
	return s
}

// absent removes the time before a claim from the clock: since last, the stamp of the entry
// before it, no process worked. An agent that was passivated, and was woken in time, had been
// waiting for an answer of its supervisor or for its own retry: that time counts.
func (s State) absent(last int64) State {
	if !s.countsWork() || s.Phase == "" || s.Phase == Done || s.Stands || s.Query.Query != "" {
		return s
	}
	if s.Rested && s.RestDue != 0 && s.Now <= s.RestDue+restGraceMS {
		return s
	}
	return s.skip(s.Now - last) //mutant:absence-counts
}

// overslept removes the time since last from the clock if a time limit passed meanwhile
// and its timer is later than a running process can be: the machine slept, or no log
// could be written. A timer that fires in time shows that a process ran.
func (s State) overslept(f Fact, last int64) State {
	if !s.countsWork() || s.Phase == "" || s.Phase == Done || s.Stands || s.Query.Query != "" {
		return s
	}
	soft, hard, gate := s.Began+s.Task.Limits.SoftMS, s.Began+s.Task.Limits.HardMS, s.impatientAt()
	due := hard
	if !s.Soft {
		due = min(due, soft)
	}
	if s.Pause.Waiting {
		due = min(due, gate)
	}
	if w, ok := f.(Woke); ok {
		switch w.Timer {
		case hardTimer:
			due = hard
		case gateTimer:
			due = gate
		}
	}
	if s.Now <= due+restGraceMS {
		return s
	}
	return s.skip(s.Now - last)
}

// skip moves the start of the agent's clock, and of its patience with a throttle, forward.
func (s State) skip(ms int64) State {
	ms = max(0, ms)
	s.Began += ms
	if s.Pause.Refused > 0 {
		s.Pause.Since += ms
	}
	return s
}

// TimeLimitSet gives a live agent new time limits, counted from now.
type TimeLimitSet struct {
	SoftMS int64 `msgpack:"s"`
	HardMS int64 `msgpack:"h"`
}

// Kind is the fact's word in logs.
func (TimeLimitSet) Kind() string { return "time_limit_set" }

// timeLimitSet replaces the time that is left by the requested time. It does not
// take back a closing turn that has begun.
func timeLimitSet(s State, f TimeLimitSet) (State, []Effect) {
	if s.Phase == "" || s.Phase == Done || f.SoftMS <= 0 || f.HardMS < f.SoftMS {
		return s, nil
	}
	at := s.clock()
	s.Task.Limits.SoftMS, s.Task.Limits.HardMS = at+f.SoftMS, at+f.HardMS
	s.Soft = false
	if s.Query.Query != "" || s.Stands {
		return s, nil
	}
	return s, s.clocks()
}

// left is the time that the agent has left, at least a moment: a child ends before
// its parent does.
func (s State) left() (soft, hard int64) {
	if !s.countsWork() {
		return 0, 0
	}
	at := s.clock()
	return max(1, s.Task.Limits.SoftMS-at), max(1, s.Task.Limits.HardMS-at)
}
