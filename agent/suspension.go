package agent

// Awaited is what a suspended agent waits for.
type Awaited string

// What suspends an agent. The zero Awaited: it is not suspended.
const (
	AwaitsPerson      Awaited = "person"   // a person's answer
	AwaitsDriftAnswer Awaited = "drift"    // a person's answer about a node that differs; see drift.go
	AwaitsOthers      Awaited = "others"   // an answer of a background child, a message, or a user's message
	AwaitsThrottle    Awaited = "throttle" // its turn at the throttle of the model; see pause.go
	AwaitsRetry       Awaited = "retry"    // the time of the next attempt
)

// Continuation is what a suspended agent continues with.
type Continuation string

// Continuations. Those from ThenGrant on follow only a question about a node that differs; such a
// question may continue with ThenCalls, too.
const (
	ThenTurn    Continuation = "turn"    // a request for the turn, closing turn or summary that Transition and Purpose describe
	ThenCalls   Continuation = "calls"   // the calls of the last reply
	ThenGrant   Continuation = "grant"   // the reservation that is already requested
	ThenAttempt Continuation = "attempt" // a new reservation: the last one was lost or returned
	ThenHooks   Continuation = "hooks"   // the hooks of the open gate, which are asked again
	ThenHeld    Continuation = "held"    // the suspension that the question has interrupted
)

// suspension is what an agent waits for in phase Waiting, and what it continues with. In any
// other phase it is zero.
type suspension struct {
	Why      Awaited
	Then     Continuation
	Question Park        // AwaitsPerson, AwaitsDriftAnswer: the open question
	Due      int64       // AwaitsRetry: the time
	Held     *suspension // ThenHeld: a person's question or a retry; shared by copies of State, and never changed
}

// asksPerson reports whether a question to a person is open.
func (w suspension) asksPerson() bool { return w.Why == AwaitsPerson || w.Why == AwaitsDriftAnswer }

// awaitsModel reports whether the wait is part of an attempt to reach the model.
func (w suspension) awaitsModel() bool { return w.Why == AwaitsThrottle || w.Why == AwaitsRetry }

// suspend makes the loop wait.
func suspend(s State, w suspension) State {
	s.Phase, s.Suspended = Waiting, w
	return s
}

// endSuspension ends the wait. The loop is then between two phases, as after the last
// call of a turn: what continues it enters the next one.
func endSuspension(s State) State {
	s.Phase, s.Suspended = Acting, suspension{}
	return s
}
