package agent

// Step is the agent loop: it takes one event and returns the next state, the effects,
// and the events for observers. An event that has no meaning in the current phase changes only the
// clock. Step panics on a Fact that it does not know: that is a bug of this
// program, never of a log (unknown kinds do not decode).
func Step(s State, e Event) (State, Output) {
	before, last := s, s.Now
	s.Now = max(s.Now, e.At)
	if e.Told {
		s.Received++
	}
	if _, claims := e.Fact.(Resumed); claims {
		s = s.absent(last)
	} else {
		s = s.overslept(e.Fact, last)
	}
	s, fx := step(s, e)
	s, fx = updateClock(s, fx)
	s, fx = countAsks(s, fx)
	if s.Phase != "" && !s.countsWork() { // older rules have none of these
		s.Sent, s.Received, s.RestDue, s.Worked = 0, 0, 0, 0
	}
	s, events := takeEvents(before, s)
	return s, Output{Effects: fx, Events: events}
}

// step handles one event, whatever the clocks say.
func step(s State, e Event) (State, []Effect) {
	switch f := e.Fact.(type) {
	case Submitted:
		return submitted(s, f)
	case Recalled:
		return recalled(s, f)
	case Hooked:
		return hooked(s, f)
	case Granted:
		return granted(s, f)
	case Denied:
		return denied(s, f)
	case Replied:
		return replied(s, f)
	case Failed:
		return failed(s, f)
	case Started:
		return started(s, f)
	case Returned:
		return returned(s, f)
	case StopAllowed:
		return stopAllowed(s, f)
	case StopVetoed:
		return stopVetoed(s, f)
	case Canceled:
		return canceled(s, f)
	case Steered:
		return steered(s, f)
	case Messaged:
		return messaged(s, f)
	case Answered:
		return answered(s, f)
	case Barred:
		return barred(s, f)
	case Admitted:
		return admitted(s, f)
	case Woke:
		return woke(s, f)
	case Vouched:
		return vouched(s, f)
	case StatusAsked:
		return statusAsked(s, f, e.Damaged)
	case TimeLimitSet:
		return timeLimitSet(s, f)
	case Resumed:
		return resumed(s, f)
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
	softTimer  = "soft"
	hardTimer  = "hard"
	retryTimer = "retry"
	gateTimer  = "gate"
)
