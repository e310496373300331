package agent

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/model"
)

// The ladder of a guardrail that does not pass without tripping: so many times
// in a row at one point, and what follows.
const (
	GuardrailTold      = 1 // the model reads why
	GuardrailDirective = 2 // it is told what it must not do
	GuardrailEnd       = 3 // the loop ends
)

// beforeModel asks the hooks that stand before a model call: context, then input.
func beforeModel(s State, why Transition) (State, []Effect) {
	s.Rounds.Sent, s.Transition = nil, why
	if next, fx, busy := s.gate(HookContext, Hooking, Gate{ID: fmt.Sprintf("%s.%d", HookContext, s.Lease+1), Why: why}); busy {
		return next, fx
	}
	return checkInput(s, why)
}

// transformed takes what is sent this turn instead of the prompt. The
// transcript stays what it is.
func transformed(s State, why Transition, v verdict) (State, []Effect) {
	if v.decision == HookTrip {
		return guarded(s, v)
	}
	s.Rounds.Sent = v.messages
	return checkInput(s, why)
}

func checkInput(s State, why Transition) (State, []Effect) {
	if next, fx, busy := s.gate(HookInput, Hooking, Gate{ID: fmt.Sprintf("%s.%d", HookInput, s.Lease+1), Why: why}); busy {
		return next, fx
	}
	return reserve(s, why)
}

// inputChecked goes on to the model call, or ends the loop.
func inputChecked(s State, why Transition, v verdict) (State, []Effect) {
	switch v.decision {
	case HookTrip: //mutant:tripwire-before-the-model-ignored
		return guarded(s, v)
	case HookDeny:
		if s.Rounds.Input++; s.Rounds.Input >= GuardrailEnd {
			return guarded(s, v)
		}
		s = s.sayToo(guardText(s.Rounds.Input, "what is in this conversation", v))
	default:
		s.Rounds.Input = 0
	}
	return reserve(s, why)
}

// checkOutput asks the guardrails of a reply before anything of it acts.
func checkOutput(s State, calls []Call, stop model.Stop) (State, []Effect) {
	g := Gate{ID: fmt.Sprintf("%s.%d", HookOutput, s.Lease), Stop: stop}
	s.Calls = calls
	if next, fx, busy := s.gate(HookOutput, Hooking, g); busy {
		return next, fx
	}
	return act(s, stop)
}

// outputChecked lets a reply act, sends it back, or ends the loop. What a
// guardrail did not pass is in no result.
func outputChecked(s State, stop model.Stop, v verdict) (State, []Effect) {
	if v.decision == HookPass { //mutant:reply-not-passed-acts
		s.Rounds.Output = 0
		return act(s, stop)
	}
	s = s.withhold() //mutant:reply-not-passed-is-shown
	s.Rounds.Output++
	calls := s.Calls
	s.Calls = nil
	if v.decision == HookTrip || s.Ending != "" || s.Rounds.Output >= GuardrailEnd {
		return guarded(s.refuse(calls, "never started: a guardrail ended the run"), v)
	}
	text := guardText(s.Rounds.Output, "your reply", v)
	if len(calls) > 0 {
		s = s.refuse(calls, "never started: "+text)
	} else {
		s = s.say(model.Message{Role: model.User, Text: text})
	}
	return nextTurn(s, NextTurn)
}

// withhold keeps the newest message out of results: guardrails stand behind
// replies, and have not passed this one.
func (s State) withhold() State {
	if len(s.hooksAt(HookOutput, "")) > 0 {
		s.Rounds.Withheld = append(slices.Clip(s.Rounds.Withheld), len(s.History)-1)
	}
	return s
}

func guardText(times int, what string, v verdict) string {
	if times < GuardrailDirective {
		return fmt.Sprintf("A guardrail did not pass %s. Take its reason into account: %s", what, v.why())
	}
	return fmt.Sprintf("A guardrail again did not pass %s. You must avoid this from now on; once more, and the run ends: %s", what, v.why())
}

// guarded ends the loop by a guardrail. Its reason is the result: what it did
// not pass must not leave by another door.
func guarded(s State, v verdict) (State, []Effect) {
	return finish(s, Outcome{Reason: Guardrail, Text: "stopped by a guardrail (" + v.why() + ")", Partial: true, Detail: v.why()})
}
