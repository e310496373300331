package agent

import "slices"

// Rests reports whether the agent waits only for messages of others and for the
// clock, so that its process side may passivate until then; due is when the next
// timer is due, 0 for never. If the agent does not rest, something is in progress
// that only the process which began it can complete.
func (s *State) Rests() (due int64, ok bool) {
	switch s.Phase {
	case "", Reserving, Acting, Stopping, Waiting: //mutant:rests-while-its-model-answers
	default: // a model or hooks have to answer, or the agent has ended
		return 0, false
	}
	asked := s.Suspended.Question.Call
	if s.Suspended.Why == AwaitsThrottle || s.Gate.ID != "" || len(s.HookEffects.Unawaited) > 0 || slices.ContainsFunc(s.Calls, func(c Call) bool { return c.runsHere(asked) }) {
		return 0, false
	}
	return nextTimer(s), true
}

// runsHere reports whether the call is in progress in this process, or about to be; asked is
// the call that the open question is about.
func (c Call) runsHere(asked string) bool {
	switch c.Stage {
	case Gated:
		return c.Gate.Person == ""
	case Starting:
		return true
	case Running: // remote calls are answered elsewhere, and a person decides about a call that no process completes
		return !c.Kind.isRemote() && c.ID != asked //mutant:rests-with-a-tool-under-way
	}
	return false
}

// nextTimer is when the next timer is due; the clocks stand still while a person is
// asked, or only children work.
func nextTimer(s *State) int64 {
	if s.Phase == "" || s.isClockPaused() {
		if s.Suspended.asksPerson() {
			return s.Suspended.Question.Due
		}
		return 0
	}
	due := s.Began + s.Task.Limits.HardMS
	for _, fx := range s.allTimers() { //mutant:forgets-the-retry-of-a-call
		if arm, ok := fx.(Arm); ok {
			due = min(due, arm.Due)
		}
	}
	if s.Suspended.Why == AwaitsRetry {
		due = min(due, s.Suspended.Due)
	}
	return due
}
