package agent

import "github.com/troupe-run/troupe/agent/event"

// Step is the agent loop: it takes one input and returns the next state, the effects,
// and the events for observers. An input that has no meaning in the current phase changes only the
// clock and, if the supervisor sent it, the count of received messages. Step panics on a Fact that
// it does not know: that is a bug of this program, never of a log (unknown kinds do not decode).
func Step(s State, e Input) (State, Output) {
	before, last := s, s.Now
	s.Now = max(s.Now, e.At)
	if e.FromSupervisor {
		s.Received++
	}
	if _, claims := e.Fact.(Resumed); claims {
		s = skipAbsence(s, last)
	} else {
		s = skipSleep(s, e.Fact, last)
	}
	s, fx := stepFact(s, e)
	fx = append(fx, armNewQuestion(before, s)...)
	s, events := takeEvents(before, s)
	if s.Allowance.Next != nil {
		before = s
		var more []Effect
		s, more = grantAhead(s)
		fx = append(fx, more...)
		var later []event.Event
		s, later = takeEvents(before, s)
		events = append(events, later...)
	}
	s, fx = returnIdleAllowance(s, fx)
	s, fx = updateClock(s, fx)
	s, fx = countSent(s, fx)
	return s, Output{Effects: fx, Events: events}
}

// stepFact handles one event, whatever the clocks say.
func stepFact(s State, e Input) (State, []Effect) {
	switch f := e.Fact.(type) {
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
	case Barred:
		return handleBarred(s, f)
	case Admitted:
		return handleAdmitted(s, f)
	case Woke:
		return handleWoke(s, f)
	case LogVerified:
		return handleLogVerified(s, f)
	case StatusAsked:
		return handleStatusAsked(s, f, e.Damaged)
	case TimeLimitSet:
		return handleTimeLimitSet(s, f)
	case Resumed:
		return handleResumed(s, f)
	case Released:
		s.Released, s.Rested, s.RestDue = true, f.Rests, f.Due
		return s, nil
	case Checkpoint, Closed:
		return s, nil
	default:
		panic("agent: unknown fact " + e.Fact.Kind())
	}
}

// Timers of the loop.
const (
	softTimer     = "soft"
	hardTimer     = "hard"
	retryTimer    = "retry"
	throttleTimer = "gate"
)
