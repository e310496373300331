package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// handleCanceled makes the loop end, at its next safe boundary or at once. Either way
// every open call gets a truthful result first.
func handleCanceled(s *State, f Canceled) (*State, []Effect) {
	if s.Phase == Done {
		return s, nil
	}
	if s.Cancel != nil {
		f.Now = f.Now || s.Cancel.Now
		if s.Cancel.As != "" {
			f.As, f.Why = s.Cancel.As, s.Cancel.Why
		}
	}
	s.Cancel = &f
	s = restorePhase(s)
	switch s.Phase {
	case Thinking:
		if f.Now {
			return s, []Effect{AbortModel{Reservation: s.Reservation}}
		}
		return s, []Effect{LeaveThrottle{}} // a throttled request is never sent //mutant:cancel-passes-the-gate
	case Acting:
		return cancelCalls(s)
	case Reserving:
		return finishCanceled(s) //mutant:cancel-while-reserving
	case Hooking:
		if s.Gate.Point != spec.HookOutput {
			return finishCanceled(s)
		}
		calls := s.Calls
		s.Calls = nil
		return finishBeforeCalls(s, calls)
	}
	var fx []Effect
	if s.Phase == Waiting && len(s.Calls) > 0 {
		s, fx = abortHooks(s)
		s = answerOpenCalls(s, s.Cancel.neverBegun(), "killed while running: its outcome is unknown")
		s = endCanceled(s)
	}
	return prependEffects(fx)(finishAgent(s, abortedOutcome(s, spec.ByCancel))) //mutant:waiting-not-canceled
}

// cancelCalls answers the calls that have not begun. It lets running calls
// complete, or kills them. The supervisor cancels the children.
func cancelCalls(s *State) (*State, []Effect) {
	var fx []Effect
	for i, c := range s.Calls {
		switch {
		case c.Stage == Gated:
			if c.Gate.Person == "" {
				fx = append(fx, AbortHooks{c.gateID()})
			}
			s = s.withCall(i, c.endGate(s.Cancel.neverBegun()))
		case c.Stage == Pending || c.Stage == Starting || c.Stage == Retrying: //mutant:cancel-of-unstarted
			s = s.withCall(i, c.endUnbegun(s.Cancel.neverBegun()))
		case c.Stage == Running && s.Cancel.Now && c.Kind.isDelegation():
			s = s.withCall(i, c.cutOff(event.Killed, "canceled while the child was running"))
		case c.Stage == Running && s.Cancel.Now && c.Kind.sends():
			s = s.withCall(i, c.cutOff(event.Killed, c.Kind.unansweredText()))
		case c.Stage == Running && s.Cancel.Now:
			fx = append(fx, AbortTool{Call: c.ID})
		}
	}
	return prependEffects(fx)(advanceCalls(s))
}

// answerOpenCalls answers every call that has no result yet.
func answerOpenCalls(s *State, pending, running string) *State {
	for i, c := range s.Calls {
		switch c.Stage {
		case Gated:
			s = s.withCall(i, c.endGate(pending))
		case Pending, Starting, Retrying:
			s = s.withCall(i, c.endUnbegun(pending))
		case Running:
			text := running
			if c.Kind == questionCall {
				text = notAnswered
			}
			s = s.withCall(i, c.cutOff(event.Killed, text))
		}
	}
	return s
}

// neverBegun returns the result text of calls that a cancel keeps from beginning.
func (f Canceled) neverBegun() string {
	switch f.As {
	case "":
		return "never started: the run was canceled"
	case spec.PolicyBlocked, spec.ToolFailure:
		return "never started: a hook ended the run"
	case spec.Guardrail:
		return "never started: a guardrail ended the run"
	case spec.Timeout:
		return "never started: the time limit of the run was reached"
	case spec.Unanswered:
		return "never started: nobody answered, so the run was ended"
	}
	return "never started: the run was ended"
}

// finishBeforeCalls ends a canceled agent whose last reply asked for calls.
func finishBeforeCalls(s *State, calls []Call) (*State, []Effect) {
	s = refuseCalls(withholdReply(s), calls, s.Cancel.neverBegun())
	return finishAgent(s, abortedOutcome(s, spec.AbortedStreaming))
}

// finishCanceled ends a canceled agent at a boundary. Before the first tools of this
// turn have run, the cancel aborted streaming, after that tools, whatever messages
// the agent has received since.
func finishCanceled(s *State) (*State, []Effect) {
	if s.ranTools() {
		return finishAgent(s, abortedOutcome(s, spec.AbortedTools))
	}
	return finishAgent(s, abortedOutcome(s, spec.AbortedStreaming))
}

func abortedOutcome(s *State, why spec.Reason) spec.Outcome {
	detail := ""
	if s.Cancel != nil {
		detail = s.Cancel.Why
		if s.Cancel.As != "" {
			why = s.Cancel.As
		}
	}
	text := ""
	switch {
	case why == spec.Guardrail:
		text = guardrailResult(detail)
	case s.Phase != "":
		text = partialResult(s)
	}
	return spec.Outcome{Reason: why, Text: text, Partial: true, Detail: detail}
}
