package agent

import "github.com/troupe-run/troupe/budget"

// A grant may bring an allowance: an amount that the pool holds for this agent alone. While it covers
// the next attempt in full, the agent begins that attempt without asking: the entry that ends the turn
// before it (a result, a verdict of hooks) is also the record of the new reservation, because the
// reservation follows from the log alone. Its settlement tells the supervisor. docs/protocol.md
// ("Attempts under an allowance") has the rules and what each prevents.

// GrantsAheadMax is how many attempts an agent may begin under one allowance. It bounds how long a new
// policy, limit or veto can be overtaken by attempts that need no grant of their own.
const GrantsAheadMax = 8

// allowance is what an agent may still begin without asking.
type allowance struct {
	Grant int // the reservation with which it was granted, 0: none
	budget.Allowance
	Attempts int           // that may still begin under it
	Route    int           // of the model that it was granted for: another one needs a grant of its own
	Begun    int           // the newest reservation that began under it
	Taken    budget.Amount // what that attempt took out of it, until it is settled
	Keep     budget.Amount // what the closing turn after that attempt needs
	Next     *Granted      // the attempt that the step under way begins
}

// AllowanceRecalled asks for the allowance of a grant: others need it, or it may no longer be used.
type AllowanceRecalled struct {
	Grant int `msgpack:"g"`
}

// Kind is the fact's word in logs.
func (AllowanceRecalled) Kind() string { return "allowance_recalled" }

// ReturnAllowance gives back the allowance of a grant. Settlements that were sent before it are
// already taken out of it.
type ReturnAllowance struct {
	Grant int `msgpack:"g"`
	// Reservation is the agent's newest one; Open: it began under the allowance and is not settled. It
	// stays reserved with Taken, and is settled like one that was granted.
	Reservation int           `msgpack:"l"`
	Open        bool          `msgpack:"o,omitempty"`
	Taken       budget.Amount `msgpack:"k,omitempty"`
	// Keep is what the closing turn needs by now; zero: no more than before.
	Keep budget.Amount `msgpack:"c,omitempty"`
}

// Kind is the message's word in the supervisor's log.
func (ReturnAllowance) Kind() string { return "return_allowance" }

func (ReturnAllowance) effect() {}

// attemptsAhead is how many attempts after the requested one the agent would begin without asking.
func (s *State) attemptsAhead() int {
	if s.ClosingReason != "" {
		return 0
	}
	return max(0, min(GrantsAheadMax, s.Task.Limits.Turns-s.Turn-1))
}

// takeAllowance records the allowance that a grant brings.
func takeAllowance(s *State, f Granted) *State {
	awaited := f.Reservation == s.Reservation && (s.Phase == Reserving || s.Suspended.Then == ThenGrant)
	if f.Allowance == nil || !awaited {
		return s
	}
	s.Allowance = allowance{Grant: f.Reservation, Allowance: *f.Allowance, Attempts: GrantsAheadMax, Route: s.Route}
	return s
}

// mayBegin reports whether the allowance covers the attempt that is about to be requested of a model.
func (a allowance) mayBegin(r budget.AttemptRequest, route int) bool {
	if a.Attempts < 1 || a.Route != route { //mutant:more-attempts-than-allowed
		return false
	}
	_, _, ok := a.Covers(r)
	return ok
}

// beginAhead takes the attempt of the newest reservation out of the allowance. The step continues as
// if that reservation had been granted: see grantAhead.
func beginAhead(s *State, r budget.AttemptRequest) *State {
	take, keep, _ := s.Allowance.Covers(r)
	s.Allowance.Attempts--
	s.Allowance.Begun, s.Allowance.Taken, s.Allowance.Keep = s.Reservation, take, keep
	s.Allowance.Next = &Granted{Reservation: s.Reservation, Output: r.Output, Calls: take.Calls}
	return s
}

// grantAhead ends a step that begins an attempt under the allowance. What would keep the agent from using
// a grant of the supervisor keeps it from using this one.
func grantAhead(s *State) (*State, []Effect) {
	f := *s.Allowance.Next
	s.Allowance.Next = nil
	return handleGranted(s, f)
}

// settleAhead sends a settlement, and takes what an attempt under the allowance has used out of it.
func settleAhead(s *State, e Settle) (*State, []Effect) {
	a := &s.Allowance
	if a.Grant == 0 || a.Begun != e.Reservation {
		return s, []Effect{e}
	}
	used := e.Used.Over(budget.Amount{}) // the pool, too, takes what is below zero for nothing
	if e.Lost {
		used.Tokens, used.Nano = a.Taken.Tokens, a.Taken.Nano
	}
	over := used.Over(a.Taken)
	if !over.Zero() { // the provider billed beyond its rules: ask before the next attempt
		a.Attempts = 0
	}
	e.Under, e.Taken = a.Grant, a.Taken
	a.Room, a.Taken = a.Room.Minus(used.Minus(over)), budget.Amount{} //mutant:allowance-spent-twice
	return s, []Effect{e}
}

// endAllowance gives the allowance back.
func endAllowance(s *State) (*State, ReturnAllowance) {
	a := s.Allowance
	s.Allowance = allowance{}
	e := ReturnAllowance{Grant: a.Grant, Reservation: s.Reservation, Keep: a.Keep}
	if s.Open && a.Begun == s.Reservation {
		e.Open, e.Taken = true, a.Taken //mutant:open-attempt-returned
	}
	return s, e
}

// handleAllowanceRecalled gives back an allowance that is recalled. If the agent has none of that grant,
// its next request or its return is on the way.
func handleAllowanceRecalled(s *State, f AllowanceRecalled) (*State, []Effect) {
	if s.Phase == Done || s.Allowance.Grant == 0 || s.Allowance.Grant != f.Grant {
		return s, nil
	}
	s, e := endAllowance(s)
	return s, []Effect{e} //mutant:recall-unanswered
}

// returnIdleAllowance gives the allowance back if the step makes the agent wait for a person, for the
// model or for other agents, and before a child is admitted: the child may need that amount. The
// return follows the settlements of the step.
func returnIdleAllowance(s *State, fx []Effect) (*State, []Effect) {
	if s.Allowance.Grant == 0 || s.Phase == Done {
		s.Allowance = allowance{}
		return s, fx
	}
	at, delegates := 0, false
	for i, e := range fx {
		switch e.(type) {
		case Settle:
			at = i + 1
		case Delegate:
			delegates = true
		default: // the others neither settle nor admit
		}
	}
	if s.Phase != Waiting && !delegates {
		return s, fx
	}
	s, e := endAllowance(s)
	return s, append(append(fx[:at:at], Effect(e)), fx[at:]...)
}
