package agent

// A log that has lost its tail tells of less than happened, and who goes on by
// it would do again what was done (PROTOCOL P13). The supervisor has heard more
// than such a log tells: before the first side effect of a life the agent asks
// it, and begins none until it has answered. Reading needs no answer; what a
// supervisor has to say of a log that is too short is a cancel.

// Vouch asks the supervisor whether it has heard more of this agent than its log
// tells. Lease is the newest that the log knows of.
type Vouch struct {
	Life  string `msgpack:"s"`
	Lease int    `msgpack:"l"`
}

// Vouched says that it has not.
type Vouched struct {
	Life string `msgpack:"s"`
}

// Kind is the ask's word in the supervisor's log.
func (Vouch) Kind() string { return "vouch" }

// Kind is the fact's word in logs.
func (Vouched) Kind() string { return "vouched" }

func (Vouch) effect() {}

// beginRecorded has the beginning of a call written down, once the life in force
// is vouched for. Effect is nil where that was asked for already.
func (s State) beginRecorded(i int) (State, Effect) {
	c := s.Calls[i]
	switch {
	case !s.Task.Manners.Vouch || s.Vouch.Answered == s.Life: //mutant:begins-when-vouched
		return s, Begin{Call: c.ID, Attempt: c.Attempt}
	case s.Vouch.Asked == s.Life: //mutant:vouch-sent-each-time
		return s, nil
	}
	s.Vouch.Asked = s.Life
	return s, Vouch{Life: s.Life, Lease: s.Lease}
}

// Vouching is what was said of the log of a life.
type Vouching struct {
	Asked    string // the life that asked last
	Answered string // the life that may begin side effects
}

// vouched lets begin what has waited for it.
func vouched(s State, f Vouched) (State, []Effect) {
	if f.Life != s.Life || f.Life != s.Vouch.Asked || s.Vouch.Answered == f.Life {
		return s, nil
	}
	s.Vouch.Answered = f.Life
	if s.Phase != Acting {
		return s, nil
	}
	var fx []Effect
	for _, c := range s.Calls {
		if c.Stage == Starting { //mutant:vouched-begins-nothing
			fx = append(fx, Begin{Call: c.ID, Attempt: c.Attempt})
		}
	}
	return s, fx
}
