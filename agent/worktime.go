package agent

import "github.com/troupe-run/troupe/agent/spec"

// Limits count time at work. State.Began is the start of an agent's clock, moved forward by all time
// that is not work:
//
//   - while a person is asked (State.AskedAt, see endQuestion);
//   - while a person has frozen the budget of the agent's subtree (BudgetFrozen);
//   - while the agent only waits for children: their own clocks run, each within the time
//     that its parent had left when it delegated, and the working time of a child counts
//     for its parent when the child answers, so a child that is parked costs nothing;
//   - while no process had the agent: from its last entry to the claim that follows;
//   - while the machine slept past a limit: from the last entry to the next one, if a
//     timer was due between them and did not fire. So a sleep alone exhausts no limit and
//     no patience; work before the sleep, since the last entry, is not counted either.
//     A sleep that is shorter than the rest of a limit cannot be detected, and counts.
//
// All of it follows from the stamps of entries.

// restGraceMS is how late the clock may wake an actor before the delay shows that
// no node was there to wake it.
const restGraceMS = 60_000

// workClock counts the time at work.
type workClock struct {
	Now      int64 // stamp of the last entry
	Began    int64 // stamp of Submitted, moved on by the time that is not work
	PausedAt int64 // since when the clock is paused, while Paused
	Paused   bool  // only children work, or the budget is frozen
	AskedAt  int64 // since when a person is asked
	Soft     bool  // the soft time limit has passed
	Worked   int64 // the clock at the end
}

// elapsed is the time at work; asking: a person is asked meanwhile.
func (c workClock) elapsed(asking bool) int64 {
	now := c.Now
	switch {
	case c.Paused:
		now = c.PausedAt
	case asking:
		now = c.AskedAt
	}
	return max(0, now-c.Began)
}

// timers arms the time limits.
func (c workClock) timers(l *spec.Limits) []Effect {
	fx := []Effect{Arm{Timer: hardTimer, Due: c.Began + l.HardMS}}
	if !c.Soft { // once is enough
		fx = append([]Effect{Arm{Timer: softTimer, Due: c.Began + l.SoftMS}}, fx...)
	}
	return fx
}

// remaining is the time until the hard limit.
func (c workClock) remaining(l *spec.Limits) int64 { return c.Began + l.HardMS - c.Now }

// isClockPaused reports whether the clock is paused: a person is asked, only children work, or the budget is frozen.
func (s *State) isClockPaused() bool { return s.Paused || s.Suspended.asksPerson() }

// workTime is how long the agent has been at work, in milliseconds.
func (s *State) workTime() int64 {
	return s.elapsed(s.Suspended.asksPerson())
}

// awaitsChildrenOnly reports whether the agent does nothing but wait for children.
func awaitsChildrenOnly(s *State) bool {
	switch {
	case s.Suspended.Why == AwaitsOthers:
		return len(s.BackgroundChildren) > 0
	case s.Phase != Acting:
		return false
	}
	return s.Calls.onlyChildrenRun()
}

// BudgetFrozen says that a reservation is granted only when a person has unfrozen the budget of a subtree.
type BudgetFrozen struct {
	Reservation int `msgpack:"l"`
}

// Kind is the fact's word in logs.
func (BudgetFrozen) Kind() string { return "budget_frozen" }

// handleBudgetFrozen notes which reservation waits for the end of a freeze.
func handleBudgetFrozen(s *State, f BudgetFrozen) *State {
	s.FrozenReservation = f.Reservation
	return s
}

// awaitsThaw reports whether the agent waits for the end of a freeze.
func awaitsThaw(s *State) bool {
	return s.Phase == Reserving && s.isFrozen() && s.Suspended.Why == "" //mutant:frozen-time-counts
}

// updateClock stops the clock when the agent begins to wait for children or for the end of a freeze, and restarts
// it when the wait is over.
func updateClock(s *State, fx []Effect) (*State, []Effect) {
	waits := awaitsChildrenOnly(s) || awaitsThaw(s)
	switch {
	case s.Phase == "" || s.Phase == Done:
	case waits && !s.Paused: //mutant:waiting-for-children-counts
		s.Paused, s.PausedAt = true, s.Now
	case !waits && s.Paused:
		s.Began, s.Paused = s.Began+s.Now-s.PausedAt, false
		if !s.Suspended.asksPerson() {
			fx = append(fx, s.allTimers()...)
		}
	}
	return s, fx
}

// creditChild counts the work of a child that has answered: the clock is at least its
// value when the child began, plus the time that the child has worked since.
func creditChild(s *State, born, worked int64) *State {
	if behind := born + worked - s.workTime(); worked > 0 && behind > 0 {
		s.Began -= behind
	}
	return s
}

// skipAbsence removes the time before a claim from the clock: since last, the stamp of the entry
// before it, no process worked. An agent that was passivated, and was woken in time, had been
// waiting for an answer of its supervisor or for its own retry: that time counts.
func skipAbsence(s *State, last int64) *State {
	if s.Phase == "" || s.Phase == Done || s.isClockPaused() {
		return s
	}
	if s.wokeInTime(s.Now) {
		return s
	}
	return skipTime(s, s.Now-last) //mutant:absence-counts
}

// skipSleep removes the time since last from the clock if a time limit passed meanwhile
// and its timer is later than a running process can be: the machine slept, or no log
// could be written. A timer that fires in time shows that a process ran.
func skipSleep(s *State, f Fact, last int64) *State {
	if s.Phase == "" || s.Phase == Done || s.isClockPaused() {
		return s
	}
	soft, hard, throttleEnd := s.Began+s.Task.Limits.SoftMS, s.Began+s.Task.Limits.HardMS, s.patience().end
	due := hard
	if !s.Soft {
		due = min(due, soft)
	}
	if s.Suspended.Why == AwaitsThrottle {
		due = min(due, throttleEnd)
	}
	if w, ok := f.(Woke); ok {
		switch w.Timer {
		case hardTimer:
			due = hard
		case throttleTimer:
			due = throttleEnd
		}
	}
	if s.Now <= due+restGraceMS {
		return s
	}
	return skipTime(s, s.Now-last)
}

// skipTime moves the start of the agent's clock, and of its patience with a throttle, forward.
func skipTime(s *State, ms int64) *State {
	ms = max(0, ms)
	s.Began += ms
	if s.ThrottleWait.Refused > 0 {
		s.ThrottleWait.Since += ms
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

// handleTimeLimitSet replaces the time that is left by the requested time. It does not
// take back a closing turn that has begun.
func handleTimeLimitSet(s *State, f TimeLimitSet) (*State, []Effect) {
	if s.Phase == "" || s.Phase == Done || f.SoftMS <= 0 || f.HardMS < f.SoftMS {
		return s, nil
	}
	at := s.workTime()
	s.Task.Limits.SoftMS, s.Task.Limits.HardMS = at+f.SoftMS, at+f.HardMS
	s.Soft = false
	if s.isClockPaused() {
		return s, nil
	}
	return s, s.allTimers()
}

// timeLeft is the time that is left after so much work, at least a moment: a child ends before
// its parent does.
func timeLeft(l *spec.Limits, worked int64) (soft, hard int64) {
	return max(1, l.SoftMS-worked), max(1, l.HardMS-worked)
}
