package agent

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Steps for a guardrail that denies without tripping: the number of denials in a
// row at one point, and the consequence.
const (
	guardrailTold      = 1 // the model reads why
	guardrailDirective = 2 // the model reads a directive not to repeat it
	guardrailEnd       = 3 // the loop ends
)

// runHooksBeforeModel asks the hooks before a model call: context, then input.
func runHooksBeforeModel(s *State, why spec.Transition) (*State, []Effect) {
	s.HookEffects.Sent, s.HookEffects.System, s.Transition = nil, nil, why
	if next, fx, busy := openGate(s, spec.HookContext, Hooking, hookGate{ID: fmt.Sprintf("%s.%d", spec.HookContext, s.Reservation+1), Why: why}); busy {
		return next, fx
	}
	return checkInput(s, why)
}

// handleTransform sends the hooks' messages instead of the prompt this turn. The
// transcript stays as it is.
func handleTransform(s *State, why spec.Transition, v hookVerdict) (*State, []Effect) {
	if v.decision == spec.HookTrip {
		return endByGuardrail(s, v)
	}
	s.HookEffects.Sent, s.HookEffects.System = v.messages, v.system
	return checkInput(s, why)
}

func checkInput(s *State, why spec.Transition) (*State, []Effect) {
	if next, fx, busy := openGate(s, spec.HookInput, Hooking, hookGate{ID: fmt.Sprintf("%s.%d", spec.HookInput, s.Reservation+1), Why: why}); busy {
		return next, fx
	}
	return requestReservation(s, why)
}

// inputChecked goes on to the model call, or ends the loop.
func inputChecked(s *State, why spec.Transition, v hookVerdict) (*State, []Effect) {
	switch v.decision {
	case spec.HookTrip: //mutant:tripwire-before-the-model-ignored
		return endByGuardrail(s, v)
	case spec.HookDeny:
		if s.HookEffects.Input++; s.HookEffects.Input >= guardrailEnd {
			return endByGuardrail(s, v)
		}
		s = appendToTranscriptAndPrompt(s, guardText(s.HookEffects.Input, "what is in this conversation", v))
	default:
		s.HookEffects.Input = 0
	}
	return requestReservation(s, why)
}

// checkOutput asks the guardrails about a reply before any of it takes effect.
func checkOutput(s *State, calls []Call, stop model.Stop) (*State, []Effect) {
	g := hookGate{ID: fmt.Sprintf("%s.%d", spec.HookOutput, s.Reservation), Stop: stop}
	s.Calls = calls
	s.events.publishNewCalls(s.Calls, s.tools)
	if next, fx, busy := openGate(s, spec.HookOutput, Hooking, g); busy {
		return next, fx
	}
	return actOnReply(s, stop)
}

// outputChecked lets a reply take effect, sends it back, or ends the loop. No
// result shows a reply that a guardrail did not pass.
func outputChecked(s *State, stop model.Stop, v hookVerdict) (*State, []Effect) {
	if v.decision == spec.HookPass { //mutant:reply-not-passed-acts
		s.HookEffects.Output = 0
		return actOnReply(s, stop)
	}
	s = withholdReply(s) //mutant:reply-not-passed-is-shown
	s.HookEffects.Output++
	calls := s.Calls
	s.Calls = nil
	if v.decision == spec.HookTrip || s.ClosingReason != "" || s.HookEffects.Output >= guardrailEnd {
		return endByGuardrail(refuseCalls(s, calls, "never started: a guardrail ended the run"), v)
	}
	text := guardText(s.HookEffects.Output, "your reply", v)
	if len(calls) > 0 {
		s = refuseCalls(s, calls, "never started: "+text)
	} else {
		s = s.appendMessage(model.Message{Role: model.User, Text: text})
	}
	return endTurn(s, spec.NextTurn)
}

// withholdReply keeps the newest message out of results: the output guardrails have not
// passed this reply.
func withholdReply(s *State) *State {
	if len(s.hooks.at(spec.HookOutput, "")) > 0 {
		s.Withheld = append(slices.Clip(s.Withheld), len(s.History)-1)
	}
	return s
}

func guardText(times int, what string, v hookVerdict) string {
	if times < guardrailDirective {
		return fmt.Sprintf("A guardrail did not pass %s. Take its reason into account: %s", what, v.reasonText())
	}
	return fmt.Sprintf("A guardrail again did not pass %s. You must avoid this from now on; once more, and the run ends: %s", what, v.reasonText())
}

// endByGuardrail ends the loop because of a guardrail. The guardrail's reason is the
// result: a text that it did not pass must not leave by another path.
func endByGuardrail(s *State, v hookVerdict) (*State, []Effect) {
	return finishAgent(s, spec.Outcome{Reason: spec.Guardrail, Text: guardrailResult(v.reasonText()), Partial: true, Detail: v.reasonText()})
}

// guardrailResult is the result of an agent that a guardrail has ended.
func guardrailResult(why string) string { return "stopped by a guardrail (" + why + ")" }
