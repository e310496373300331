package agent

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/failure"
	"github.com/troupe-run/troupe/model"
)

// proposeCompletion says that the agent believes it is done: the task's requirements decide
// first, then the stop hooks, then the supervisor.
func proposeCompletion(s *State) (*State, []Effect) {
	if s.awaitsOthers() { //mutant:lingers-before-the-stop
		return waitForOthers(s)
	}
	if _, failed := declaredFailure(s); failed == "" { // what has failed need not meet the requirements
		next, fx, busy := pursueGoal(s)
		if busy {
			return next, fx
		}
		if next, fx, busy = confirmEnd(next); busy {
			return next, fx
		}
		s = next
	}
	if next, fx, busy := openGate(s, spec.HookStop, Stopping, hookGate{ID: fmt.Sprintf("%s.%d", spec.HookStop, s.Reservation)}); busy {
		return next, fx
	}
	return proposeStop(s)
}

// stopChecked continues after the stop hooks. A block is not a turn: the loop
// continues with unchanged counters, so that no recovery begins anew.
func stopChecked(s *State, v hookVerdict) (*State, []Effect) {
	switch v.decision {
	case spec.HookPrevent: //mutant:stop-prevented-goes-on
		return finishAgent(s, spec.Outcome{Reason: spec.StopHookPrevented, Text: s.finalAnswer(), Partial: true, Detail: v.reasonText()})
	case spec.HookBlock:
		text := v.text
		if text == "" {
			text = notDone
		}
		s.HookEffects.Blocks++
		if s.HookEffects.Blocks > s.Task.Limits.VetoesInARow() || text == s.HookEffects.Block { //mutant:blocks-without-end
			return finishAgent(s, spec.Outcome{Reason: spec.StopHookPrevented, Text: s.finalAnswer(), Partial: true,
				Detail: fmt.Sprintf("sent back %d times in a row by %s", s.HookEffects.Blocks, v.reasonText())})
		}
		s.HookEffects.Block = text
		if s.Declared.Reason == "" { // the call that declares a failure has the number of its turn in its id
			s.Turn--
		}
		return endTurn(dropKeptText(s).appendMessage(model.Message{Role: model.User, Text: text}), spec.StopHookBlocking)
	}
	s.HookEffects.Blocks, s.HookEffects.Block = 0, ""
	return proposeStop(s)
}

const notDone = "You are not done yet."

func proposeStop(s *State) (*State, []Effect) {
	s.failureStreaks = s.withoutUseless()
	s.Phase = Stopping
	s.Proposal++
	s.events.publish(stopEvents, event.KindStopProposed, event.Stop{Proposal: s.Proposal})
	return s, []Effect{newProposal(s)}
}

// awaitsVerdict reports whether the loop waits for the verdict on this proposal. While stop
// hooks are asked, the next proposal is not made yet, and the previous one is decided.
func (s *State) awaitsVerdict(proposal int) bool {
	return s.Phase == Stopping && s.Gate.ID == "" && s.Proposal == proposal
}

// handleStopAllowed ends the loop, unless a user's message arrived meanwhile.
func handleStopAllowed(s *State, f StopAllowed) (*State, []Effect) {
	if !s.awaitsVerdict(f.Proposal) { //mutant:verdict-of-its-proposal
		return s, nil
	}
	s.events.publish(entryEvents, event.KindStopAllowed, event.Stop{Proposal: f.Proposal, Policy: f.By.Event()})
	s.Vetoes = 0
	if (len(s.PendingSteers) > 0 || s.awaitsOthers()) && s.Cancel == nil { //mutant:steered-at-the-stop
		return endTurn(dropKeptText(s), spec.Steering)
	}
	return finishAgent(s, completedOutcome(s))
}

// completedOutcome returns the outcome of an answer that may stand. An answer that declares a failure does not complete the task.
func completedOutcome(s *State) spec.Outcome {
	if why, reason := declaredFailure(s); reason != "" {
		return spec.Outcome{Reason: reason, Text: s.finalAnswer(), Partial: true, Detail: failureDetail(why, s.Declared.Condition, s.Task.FailIf)}
	}
	return spec.Outcome{Reason: cmp.Or(s.Goal.End, spec.Completed), Text: s.finalAnswer()}
}

// declaredFailure returns why the agent says that it has failed, or refuses, and the reason with which it ends; "": it
// says neither. It says so by a call of declare_failure, or by a mark. Only an agent that was told of the marks, in
// its prompt or when it was asked about obstacles, says so by them.
func declaredFailure(s *State) (why string, reason spec.Reason) {
	if s.Declared.Reason != "" {
		return s.Declared.Why, s.Declared.Reason
	}
	if stable, _ := systemPrompt(s); !strings.Contains(stable, spec.FailedMark) && s.Goal.Asked == 0 {
		return "", ""
	}
	if rest, found := cutMark(s.joinedText(), spec.FailedMark); found {
		return rest, spec.Failed
	}
	if rest, found := cutMark(s.joinedText(), spec.RefusedMark); found {
		return rest, spec.Refused
	}
	return "", ""
}

// markDecoration may stand around a mark: models write it in bold, as code, in quotes or with a colon.
const markDecoration = "*_`\"'>:"

// cutMark returns what follows a mark at the beginning of an answer. A link and a longer word are no mark.
func cutMark(answer, mark string) (rest string, found bool) {
	text := strings.TrimLeft(strings.TrimSpace(answer), markDecoration+" ")
	if len(text) < len(mark) || !strings.EqualFold(text[:len(mark)], mark) {
		return "", false
	}
	rest = strings.TrimLeft(text[len(mark):], markDecoration)
	trimmed := strings.TrimSpace(rest)
	return trimmed, trimmed == "" || rest != text[len(mark):] || !strings.HasPrefix(rest, trimmed)
}

const failureDetailMax = 400 // bytes of an answer that declares a failure

// failureDetail is the reason of a declared failure, with the words of the failure condition that it names: by a number
// of its own, or in its text.
func failureDetail(why string, condition int, conditions []string) string {
	detail, _, _ := strings.Cut(why, "\n")
	detail = clip.Marked(detail, failureDetailMax, "…")
	if n := cmp.Or(condition, failure.NamedCondition(why, conditions)); n > 0 {
		return fmt.Sprintf("failure condition %d (%s): %s", n, conditions[n-1], detail)
	}
	return detail
}

// handleStopVetoed continues the loop with the reason as a message. The supervisor
// counts vetoes and makes the last one final.
func handleStopVetoed(s *State, f StopVetoed) (*State, []Effect) {
	if !s.awaitsVerdict(f.Proposal) {
		return s, nil
	}
	turn := s.Turn
	s.events.entryTurn = &turn
	s.events.publish(entryEvents, event.KindStopVetoed, event.Stop{Proposal: f.Proposal, Why: f.Why, Final: f.Final, Policy: f.By.Event()})
	s.Vetoes++
	s.VetoedBy = f.By
	if f.Final {
		return finishAgent(s, spec.Outcome{Reason: spec.Vetoed, Text: s.finalAnswer(), Partial: true, Detail: f.By.explain(f.Why)})
	}
	why := f.Why
	if strings.TrimSpace(why) == "" {
		why = notDone
	}
	s = dropKeptText(s).appendMessage(model.Message{Role: model.User, Text: why})
	return endTurn(s, spec.StopVeto)
}
