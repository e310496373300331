package agent

// A log that has lost its tail records less than happened, and an agent that continues
// by it would repeat side effects (PROTOCOL P13). The supervisor has received more than
// such a log records: before the first side effect of an activation the agent asks the
// supervisor, and begins none until it has answered. Reads need no answer; if a log is
// too short, the supervisor answers with a cancel.

// VerifyLog asks the supervisor whether it has received more from this agent than the
// agent's log records. Reservation is the newest one in that log.
type VerifyLog struct {
	Activation  string `msgpack:"s"`
	Reservation int    `msgpack:"l"`
}

// LogVerified says that the supervisor has not received more.
type LogVerified struct {
	Activation string `msgpack:"s"`
}

// Kind is the message's word in the supervisor's log.
func (VerifyLog) Kind() string { return "verify_log" }

// Kind is the fact's word in logs.
func (LogVerified) Kind() string { return "log_verified" }

func (VerifyLog) effect() {}

// recordBeginning records the beginning of a call, once the log of the current
// activation is verified. Effect is nil if verification was requested already.
func recordBeginning(s *State, i int) (*State, Effect) {
	c := s.Calls[i]
	switch {
	case s.LogVerification.Answered == s.Activation: //mutant:begins-when-verified
		return s, Begin{Call: c.ID, Attempt: c.Attempt}
	case s.LogVerification.Asked == s.Activation: //mutant:verification-asked-each-time
		return s, nil
	}
	s.LogVerification.Asked = s.Activation
	return s, VerifyLog{Activation: s.Activation, Reservation: s.Reservation}
}

// logVerification is the state of log verification.
type logVerification struct {
	Asked    string // the activation that asked last
	Answered string // the activation that may begin side effects
}

// handleLogVerified begins the calls that waited for log verification.
func handleLogVerified(s *State, f LogVerified) (*State, []Effect) {
	if f.Activation != s.Activation || f.Activation != s.LogVerification.Asked || s.LogVerification.Answered == f.Activation {
		return s, nil
	}
	s.LogVerification.Answered = f.Activation
	if s.Phase != Acting {
		return s, nil
	}
	var fx []Effect
	for _, c := range s.Calls {
		if c.Stage == Starting { //mutant:verified-begins-nothing
			fx = append(fx, Begin{Call: c.ID, Attempt: c.Attempt})
		}
	}
	return s, fx
}
