package agent

import "github.com/troupe-run/troupe/agent/event"

// Step is the agent loop: it takes one input and returns the next state, the effects,
// and the events for observers. A fact that the current phase does not await begins nothing: it changes
// at most the clock, the count of received messages, and what later turns read (steers, mail, notes about limits).
// Step panics on a Fact that it does not know: that is a bug of this program, never of a log
// (unknown kinds do not decode).
func Step(before State, in Input) (State, Output) {
	s, out := stepCopy(&before, copyOf(&before), in)
	return *s, out
}

// stepCopy steps a copy of the State before. All handlers change that one copy and return it: a State is too large to be
// copied at each call. A handler that only tries something does so with a copy of its own.
func stepCopy(before, s *State, in Input) (*State, Output) {
	lastStamp := s.Now
	s.Now = max(s.Now, in.At)
	if in.FromSupervisor {
		s.Received++
	}
	if _, isClaim := in.Fact.(Resumed); isClaim {
		s = skipAbsence(s, lastStamp)
	} else {
		s = skipSleep(s, in.Fact, lastStamp)
	}
	s, fx := stepFact(s, in)
	s, fx = passOn(s, fx) //mutant:steering-stays-with-the-caller
	fx = append(fx, armNewQuestion(before, s)...)
	s, events := takeEvents(before, s)
	if s.Allowance.Next != nil {
		var more []Effect
		var later []event.Event
		s, more, later = beginAttemptAhead(s)
		fx, events = append(fx, more...), append(events, later...)
	}
	s, fx = returnIdleAllowance(s, fx)
	s, fx = updateClock(s, fx)
	s, fx = countSent(s, fx)
	s.copiedCalls = nil
	return s, Output{Effects: fx, Events: events}
}

// beginAttemptAhead begins the attempt under the allowance that the step has prepared after it ended a turn. The new
// turn publishes its own events, after those of the old one.
func beginAttemptAhead(s *State) (*State, []Effect, []event.Event) {
	before := copyOf(s)
	s, fx := grantAhead(s)
	s, events := takeEvents(before, s)
	return s, fx, events
}

// stepFact passes one fact to its handler. Step has already set the clocks.
func stepFact(s *State, in Input) (*State, []Effect) {
	switch f := in.Fact.(type) {
	case Submitted:
		return handleSubmitted(s, f)
	case Recalled:
		return handleRecalled(s, f)
	case Hooked:
		return handleHooked(s, f)
	case Granted:
		return handleGranted(s, f)
	case Denied:
		return handleDenied(s, f)
	case AllowanceRecalled:
		return handleAllowanceRecalled(s, f)
	case Replied:
		return handleReplied(s, f)
	case Failed:
		return handleFailed(s, f)
	case Started:
		return handleStarted(s, f)
	case Returned:
		return handleReturned(s, f)
	case StopAllowed:
		return handleStopAllowed(s, f)
	case StopVetoed:
		return handleStopVetoed(s, f)
	case Canceled:
		return handleCanceled(s, f)
	case Steered:
		return handleSteered(s, f)
	case Messaged:
		return handleMessaged(s, f)
	case Answered:
		return handleAnswered(s, f)
	case RuleAllowed:
		return handleRuleAllowed(s, f)
	case PermissionsNarrowed:
		return handlePermissionsNarrowed(s, f, in.FromSupervisor)
	case Throttled:
		return handleThrottled(s, f)
	case Admitted:
		return handleAdmitted(s, f)
	case Woke:
		return handleWoke(s, f)
	case LogVerified:
		return handleLogVerified(s, f)
	case StatusAsked:
		return handleStatusAsked(s, f, in.Damaged)
	case BudgetFrozen:
		return handleBudgetFrozen(s, f), nil
	case TimeLimitSet:
		return handleTimeLimitSet(s, f)
	case Resumed:
		return handleResumed(s, f)
	case Forked:
		return handleForked(s, f), nil
	case ModelSet:
		return handleModelSet(s, f), nil
	case ContextSet:
		return handleContextSet(s, f, in.FromSupervisor), nil
	case Released:
		s.shellState = s.release(f)
		return s, nil
	case Checkpoint, Closed:
		return s, nil
	default:
		panic("agent: unknown fact " + in.Fact.Kind())
	}
}

// Timers of the loop.
const (
	softTimer     = "soft"
	hardTimer     = "hard"
	retryTimer    = "retry"
	throttleTimer = "throttle"
)
