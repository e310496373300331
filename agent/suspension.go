package agent

// awaited is what a suspended agent waits for.
type awaited string

// What suspends an agent. The zero awaited: it is not suspended.
const (
	AwaitsPerson      awaited = "person"   // a person's answer
	AwaitsDriftAnswer awaited = "drift"    // a person's answer about a node that differs; see drift.go
	AwaitsOthers      awaited = "others"   // an answer of a background child, a message, or a user's message
	AwaitsThrottle    awaited = "throttle" // its turn at the throttle of the model; see pause.go
	AwaitsRetry       awaited = "retry"    // the time of the next attempt
)

// continuation is what a suspended agent continues with.
type continuation string

// Continuations. Those from ThenGrant on follow only a question about a node that differs; such a
// question may continue with ThenCalls, too.
const (
	ThenTurn    continuation = "turn"    // a request for the turn, closing turn or summary that Transition and Purpose describe
	ThenCalls   continuation = "calls"   // the calls of the last reply
	ThenGrant   continuation = "grant"   // the reservation that is already requested
	ThenAttempt continuation = "attempt" // a new reservation: the last one was lost or returned
	ThenHooks   continuation = "hooks"   // the hooks of the open gate, which are asked again
	ThenHeld    continuation = "held"    // the suspension that the question has interrupted
)

// suspension is what an agent waits for in phase Waiting, and what it continues with. In any
// other phase it is zero.
type suspension struct {
	Why      awaited
	Then     continuation
	Question Park        // AwaitsPerson, AwaitsDriftAnswer: the open question
	Due      int64       // AwaitsRetry: the time
	Held     *suspension // ThenHeld: a person's question or a retry; shared by copies of State, and never changed
}

// asksPerson reports whether a question to a person is open.
func (w suspension) asksPerson() bool { return w.Why == AwaitsPerson || w.Why == AwaitsDriftAnswer }

// awaitsModel reports whether the wait is part of an attempt to reach the model.
func (w suspension) awaitsModel() bool { return w.Why == AwaitsThrottle || w.Why == AwaitsRetry }

// suspend makes the loop wait.
func suspend(s *State, w suspension) *State {
	s.Phase, s.Suspended = Waiting, w
	return s
}

// endSuspension ends the wait. The loop is then between two phases, as after the last
// call of a turn: what continues it enters the next one.
func endSuspension(s *State) *State {
	s.Phase, s.Suspended = Acting, suspension{}
	return s
}
