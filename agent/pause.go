package agent

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/model"
)

// Pause is the wait at the gate of a model that refuses everybody. Who waits
// there holds no lease, and no refusal counts as a failed attempt: a storm of
// them pauses a loop and does not end it. The wait is part of the agent's time.
type Pause struct {
	N       int   // number of the newest wait
	Waiting bool  // now
	Refused int   // times since the model last answered, by the provider or by the gate
	Own     int   // by the provider, to this agent, where another model could take over
	Since   int64 // stamp of the first of them
	Why     string
}

// Limits of the wait at a gate.
const (
	// PatienceMS is how long a loop waits for one answer of its model.
	PatienceMS = 10 * 60 * 1000
	// PatienceElseMS is how long it waits where another model can take over.
	PatienceElseMS = 30 * 1000
	// RefusalsMax ends a wait that is let in and refused again and again.
	RefusalsMax = 64
	// PatienceMax is the longest that manners may ask for.
	PatienceMax = 24 * 60 * 60 * 1000
)

// Barred says that nothing was sent under the lease: the gate is closed.
type Barred struct {
	Lease   int    `msgpack:"l"`
	AfterMS int64  `msgpack:"a,omitempty"` // for about so long
	Why     string `msgpack:"w,omitempty"`
}

// Admitted ends a wait at the gate: it is this agent's turn to ask for a lease.
type Admitted struct {
	Pause int `msgpack:"p"`
}

// Kind words.
func (Barred) Kind() string   { return "barred" }
func (Admitted) Kind() string { return "admitted" }

// AwaitGate waits at the gate of a model until it is the agent's turn; that
// comes back as Admitted.
type AwaitGate struct {
	Pause  int
	Model  string
	Tokens int64 // that the call will take, about
}

// LeaveGate says that nothing of this agent is to be let in any more: a wait ends,
// and a request whose lease waits at the gate comes back as Barred.
type LeaveGate struct{}

func (AwaitGate) effect() {}
func (LeaveGate) effect() {}

// elsewhere reports whether something else can do what the model in use is
// asked for.
func (s State) elsewhere() bool {
	if s.Purpose == ForSummary {
		return true // the agent's own model, or lines of the messages
	}
	_, ok := s.nextRoute()
	return ok
}

// patience is how long the loop waits for an answer; 0: not at all.
func (s State) patience() int64 {
	p := max(0, s.Task.Manners.PatienceMS)
	if s.elsewhere() {
		return min(p, PatienceElseMS)
	}
	return p
}

// waits reports whether a refusal is waited out at the gate. One that may be
// billed is a failed attempt; and where another model can take over, so are
// refusals by the provider itself, as many as there are retries.
func (s State) waits(f Failed) bool {
	return s.patience() > 0 && f.Unbilled && (f.Class == model.RateLimit || f.Class == model.Overload) && //mutant:storm-kills
		(!s.elsewhere() || s.mayRetry())
}

// mayRetry: failed attempts in a row are bounded, those that were waited out for
// a while among them.
func (s State) mayRetry() bool { return s.Retries+s.Pause.Own < s.Task.Limits.Retries } //mutant:model-retried-for-ever

// refused takes a refusal that is waited out.
func refused(s State, f Failed) (State, []Effect) {
	if s.elsewhere() {
		s.Pause.Own++
	}
	return atGate(s, fmt.Sprintf("%s: %s", f.Class, f.Detail), f.AfterMS)
}

// barred takes a lease that the gate did not let pass.
func barred(s State, f Barred) (State, []Effect) {
	if s.Phase != Thinking || f.Lease != s.Lease {
		return s, nil
	}
	why := "the gate is closed"
	if f.Why != "" {
		why += ": " + f.Why
	}
	if s.patience() == 0 && s.Cancel == nil {
		return failed(s, Failed{Lease: f.Lease, Class: model.RateLimit, Detail: why, Unbilled: true, AfterMS: f.AfterMS})
	}
	s, fx := s.unused()
	if s.Cancel != nil {
		return then(fx)(finishCanceled(s))
	}
	return then(fx)(atGate(s, why, f.AfterMS))
}

// unused gives the lease back: nothing was billed under it.
func (s State) unused() (State, []Effect) {
	s.Open = false
	return s, []Effect{Settle{Lease: s.Lease, Turn: s.Turn + 1, Unused: true}} //mutant:unused-lease
}

// atGate waits for the agent's turn, as long as the loop has patience. A pause
// that is longer than it waits for another model is not begun.
func atGate(s State, why string, afterMS int64) (State, []Effect) {
	if s.Pause.Refused == 0 {
		s.Pause.Since = s.Now
	}
	s.Pause.Refused++
	s.Pause.Why = why
	end := s.impatientAt()
	if s.Now >= end || s.Pause.Refused > RefusalsMax || s.elsewhere() && s.Now+min(max(afterMS, 0), retryAfterMaxMS) >= end {
		return impatient(s)
	}
	s.Pause.N++
	s.Pause.Waiting = true
	s.Phase, s.Transition = Waiting, ModelRetry
	return s, s.atTheGate()
}

func (s State) impatientAt() int64 { return s.Pause.Since + s.patience() }

// atTheGate is what waits. All of it follows from the state, so that a later
// life can wait on.
func (s State) atTheGate() []Effect {
	return []Effect{AwaitGate{Pause: s.Pause.N, Model: s.calling(), Tokens: s.Grant.Output + s.Anchor.Tokens},
		Arm{Timer: gateTimer, Due: s.impatientAt()}}
}

// admitted asks for a new lease. Meanwhile the turn may have become another one.
func admitted(s State, f Admitted) (State, []Effect) {
	if s.Phase != Waiting || !s.Pause.Waiting || f.Pause != s.Pause.N { //mutant:turn-of-another-wait
		return s, nil
	}
	s.Pause.Waiting = false
	switch {
	case s.Purpose == ForSummary:
		s.Folding.Tries-- // it was never asked
		return askSummary(s)
	case s.Ending != "":
		return beforeModel(s, ClosingTurn)
	}
	return nextTurn(s, ModelRetry)
}

// waited takes the timer of a wait.
func waited(s State) (State, []Effect) {
	if s.Phase != Waiting || !s.Pause.Waiting {
		return s, nil
	}
	if due := s.impatientAt(); s.Now < due { //mutant:patience-without-end
		return s, []Effect{Arm{Timer: gateTimer, Due: due}}
	}
	return then([]Effect{LeaveGate{}})(impatient(s))
}

// impatient goes on without the model: with another one, where there is one.
func impatient(s State) (State, []Effect) {
	took := time.Duration(s.Now-s.Pause.Since) * time.Millisecond
	detail := fmt.Sprintf("%s; given up after %s", s.Pause.Why, took.Round(time.Millisecond))
	s.Pause = Pause{N: s.Pause.N}
	switch {
	case s.Purpose == ForSummary:
		return otherSummary(s)
	case s.Ending != "":
		return finish(s, Outcome{Reason: s.Ending, Text: s.found(), Partial: true, Detail: detail})
	}
	return fallback(s, detail)
}
