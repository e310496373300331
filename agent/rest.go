package agent

import "slices"

// Rests reports whether the agent waits only for messages of others and for the
// clock, so that its process side may passivate until then; due is when the next
// timer is due, 0 for never. If the agent does not rest, something is in progress
// that only the process which began it can complete.
func (s State) Rests() (due int64, ok bool) {
	switch s.Phase {
	case "", Leasing, Acting, Stopping, Waiting: //mutant:rests-while-its-model-answers
	default: // a model or hooks have to answer, or the agent has ended
		return 0, false
	}
	if s.ThrottleWait.Waiting || s.Gate.ID != "" || len(s.HookEffects.Told) > 0 || slices.ContainsFunc(s.Calls, func(c Call) bool { return c.runsHere(s.Query) }) {
		return 0, false
	}
	return nextTimer(s), true
}

// runsHere reports whether the call is in progress in this process, or about to be; q is the open question.
func (c Call) runsHere(q Park) bool {
	switch c.Stage {
	case Gated:
		return c.Person == ""
	case Starting:
		return true
	case Running: // remote calls are answered elsewhere, and a person decides about a call that no process completes
		return !c.isRemote() && (q.Query == "" || q.Call != c.ID) //mutant:rests-with-a-tool-under-way
	}
	return false
}

// nextTimer is when the next timer is due; the clocks stand still while a person is
// asked, or only children work.
func nextTimer(s State) int64 {
	if s.Phase == "" || s.Query.Query != "" || s.Stands {
		return 0
	}
	due := s.Began + s.Task.Limits.HardMS
	for _, fx := range s.allTimers() { //mutant:forgets-the-retry-of-a-call
		if arm, ok := fx.(Arm); ok {
			due = min(due, arm.Due)
		}
	}
	if s.Phase == Waiting && !s.Idle {
		due = min(due, s.RetryDue)
	}
	return due
}
