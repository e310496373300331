package agent

// Step is the agent loop: one event in, the next state and what is to be done
// about it. An event that means nothing in the present phase changes nothing
// but the clock. Step panics on a Fact that it does not know: that is a bug of
// this program, never of a log (unknown kinds do not decode).
func Step(s State, e Event) (State, []Effect) {
	s.Now = max(s.Now, e.At)
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
	case Resumed:
		return resumed(s, f)
	case Released:
		s.Released, s.Rested = true, f.Rests
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
