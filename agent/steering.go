package agent

import (
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// A message of a user enters the transcript at the next turn boundary. With Now it also brings that boundary closer:
// the agent begins nothing more of the turn under way.
//
//   - A request that is being computed, or was reserved for the prompt without the message, is abandoned: its reservation is settled as
//     far as its cost is known.
//   - Calls that have not begun do not begin. A question to a person about such a call is withdrawn, and so is a question of the model.
//   - Calls that only read are aborted.
//   - Every other call that has begun completes, and so do children: a side effect is never cut off.
//
// Three things go on as without Now: a closing turn, the summary of a compaction, which the next request needs, and a
// question about a side effect of unknown outcome.

// Steered is a user's message to a running agent. An agent that has handed off passes it on by its supervisor,
// and messages of agents, too.
type Steered struct {
	Text string `msgpack:"t"`
	// Now ends the current turn early: see the rules above.
	Now bool `msgpack:"n,omitempty"`
}

// Kind is the fact's word in logs.
func (Steered) Kind() string { return "steered" }

func (Steered) effect() {}

// Results of calls that a message of a user keeps from running to their end.
const (
	notRunSteered = "not run: a person changed course"
	abortedRead   = "aborted: a person changed course"
)

// handleSteered keeps a user's message for the next turn boundary, and wakes an agent that waits only for others.
func handleSteered(s *State, f Steered) (*State, []Effect) {
	if s.Phase == Done || strings.TrimSpace(f.Text) == "" {
		return s, nil
	}
	s.PendingSteers = append(s.PendingSteers[:len(s.PendingSteers):len(s.PendingSteers)], f.Text) //mutant:steers-not-clipped
	if f.Now && s.Cancel == nil && s.Phase != "" {
		return preemptTurn(s)
	}
	return wakeIdle(s)
}

// preemptTurn ends the current turn at its next safe point.
func preemptTurn(s *State) (*State, []Effect) {
	s.TurnPreempted = true
	switch s.Phase {
	case Thinking:
		if abandonsTurn(s) {
			return s, []Effect{AbortModel{Reservation: s.Reservation}}
		}
	case Acting:
		return prependEffects(abortReads(s))(advanceCalls(s))
	case Waiting:
		if s.Suspended.Why == AwaitsPerson && asksAboutUnbegun(s, s.Suspended) {
			s, fx := endQuestion(s)
			return prependEffects(fx)(advanceCalls(s))
		}
	}
	return wakeIdle(s) // at another boundary, or a gate: what follows it checks abandonsTurn
}

// abandonsTurn reports whether the request of the turn under way is abandoned because of a user's message.
func abandonsTurn(s *State) bool {
	return s.TurnPreempted && s.Cancel == nil && s.Purpose == ForTurn && s.ClosingReason == ""
}

// abortReads aborts the running calls that only read.
func abortReads(s *State) []Effect {
	var fx []Effect
	for _, c := range s.Calls {
		if c.Stage == Running && c.Class == model.Read && !c.Kind.isRemote() { //mutant:steering-cuts-a-side-effect
			fx = append(fx, AbortTool{Call: c.ID})
		}
	}
	return fx
}

// endPreemptedCalls ends the calls that have not begun, if a user's message preempts them. A call that had begun
// before, and whose outcome is unknown, goes on.
func endPreemptedCalls(s *State) (*State, []Effect) {
	if !s.TurnPreempted || s.Cancel != nil { //mutant:preempted-call-begins
		return s, nil
	}
	var fx []Effect
	for i, c := range s.Calls {
		switch {
		case c.Stage == Gated && c.Gate.Point == spec.HookPreTool && !c.isLost():
			if c.Gate.Person == "" {
				fx = append(fx, AbortHooks{c.gateID()})
			}
			s = s.withCall(i, c.endGate(notRunSteered).skippedByPerson())
		case (c.Stage == Pending || c.Stage == Starting || c.Stage == Retrying) && !c.isLostBefore():
			s = s.withCall(i, c.endUnbegun(notRunSteered).skippedByPerson())
		case c.Kind == questionCall && c.Stage == Running:
			s = s.withCall(i, c.end(model.ToolResult{Text: "not answered: a person changed course"}))
		}
	}
	return s, fx
}

// skippedByPerson marks a call that a person's message kept from running, so that it does not count as an obstacle.
func (c Call) skippedByPerson() Call {
	c.Disposition = refusedByPerson
	return c
}

// asksAboutUnbegun reports whether a question is about a call that has not begun, or is a question of the model.
func asksAboutUnbegun(s *State, w suspension) bool {
	i := s.Calls.find(w.Question.Call)
	if w.Then != ThenCalls || i < 0 {
		return false
	}
	c := s.Calls[i]
	return c.Kind == questionCall || c.Stage == Gated && !c.isLost()
}

// restartTurn releases the reservation for the outdated prompt and begins a turn whose prompt has the user's message.
func restartTurn(s *State) (*State, []Effect) {
	s, fx := settleAhead(s, Settle{Reservation: s.Reservation, Turn: s.Turn})
	s.Open = false
	return prependEffects(fx)(endTurn(endSuspension(s), spec.Steering))
}

// withoutSteers clears the pending messages of users, after they reached the transcript or another agent.
func withoutSteers(s *State) *State {
	s.PendingSteers, s.TurnPreempted = nil, false
	return s
}

// steeredFacts are the messages of users that have not reached the transcript.
func steeredFacts(s *State) []Effect {
	fx := make([]Effect, 0, len(s.PendingSteers))
	for i, text := range s.PendingSteers {
		fx = append(fx, Steered{Text: text, Now: s.TurnPreempted && i == len(s.PendingSteers)-1})
	}
	return fx
}
