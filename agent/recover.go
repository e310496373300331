package agent

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// rejectUseless handles a reply without content: the reply stays in the record as a
// tombstone, costs a turn, and the loop explains the error to the model.
func rejectUseless(s *State, what string) (*State, []Effect) {
	s = s.strikeNewest().appendMessage(model.Message{Role: model.User, Text: what + " Reply with plain text if you are done, or call one of the tools: " + s.tools.names() + "."})
	s.Useless++
	if s.Useless >= s.Task.Limits.Malformed {
		return finishAgent(s, spec.Outcome{Reason: spec.Malformed, Text: partialResult(s), Partial: true,
			Detail: fmt.Sprintf("%d useless replies in a row", s.Useless)})
	}
	return endTurn(s, spec.MalformedRecovery)
}

const continuePrompt = "You were cut off. Continue from where you stopped."

// continueCut handles a text that hit the output limit: the model continues it, at most
// Cuts times in a row, and that costs no turn.
func continueCut(s *State) (*State, []Effect) {
	s.Cuts++
	if s.Cuts > s.Task.Limits.Cuts {
		return finishAgent(s, spec.Outcome{Reason: spec.MaxOutputTokens, Text: s.finalAnswer(), Partial: true})
	}
	s.Turn--
	s = s.appendMessage(model.Message{Role: model.User, Text: continuePrompt})
	return endTurn(s, spec.OutputRecovery)
}

// handleFailed handles an attempt that the model did not answer.
func handleFailed(s *State, f Failed) (*State, []Effect) {
	if s.Phase != Thinking || f.Reservation != s.Reservation {
		return s, nil
	}
	s.events.cause = fmt.Sprintf("%s: %s", f.Class, f.Detail)
	s.events.publishUnanswered(s.attempt(), f)
	return recoverAttempt(s, f)
}

// recoverAttempt recovers from an attempt without an answer: the partial reply stays in the
// record as a tombstone, the reservation is settled, and the loop tries again as
// far as the class and the limits allow.
func recoverAttempt(s *State, f Failed) (*State, []Effect) {
	s.ModelMS += f.TookMS
	if s.Purpose == ForSummary {
		return handleFailedSummary(s, f)
	}
	if f.Unbilled {
		f.Reply.UsageKnown, f.Reply.Usage = true, model.Usage{}
	}
	if s.Cancel != nil {
		f.Reply.Message.Interrupted = f.Class == model.Aborted
		s, calls := keepPartialReply(s, f.Reply)
		s, fx := settleReservation(s, f.Reply, 0)
		return prependEffects(fx)(finishBeforeCalls(s, calls))
	}
	anchor, held, waits := s.Anchor, s.Allowance, waitsOut(s, f)
	s, _ = keepPartialReply(s, f.Reply)
	if m := s.newest(); m.Role == model.Assistant && !m.Tombstone { //mutant:failed-partial-is-kept
		s = s.strikeNewest()
	}
	s, fx := settleReservation(s, f.Reply, 0)
	s.Anchor = anchor // a failed attempt is no measure of the prompt
	if f.Class == model.Aborted && abandonsTurn(s) {
		return prependEffects(fx)(endTurn(endSuspension(s), spec.Steering))
	}
	if waits {
		s.Allowance = held
		s, fx = releaseReservation(s)
	}
	s, told := notifyHooks(s, spec.HookStopFailure, fmt.Sprint(s.Reservation), "", spec.HookData{Text: fmt.Sprintf("%s: %s", f.Class, f.Detail), Error: true})
	fx = append(fx, told...)
	switch {
	case f.Class.Retryable() && s.outlasts(f.AfterMS, &s.Task.Limits):
		return prependEffects(fx)(outOfTime(s, f))
	case waits:
		return prependEffects(fx)(waitOutRefusal(s, f))
	case s.ClosingReason != "":
		return prependEffects(fx)(endFailedClosing(s, fmt.Sprintf("%s: %s", f.Class, f.Detail), originOf(f)))
	case f.Class == model.Undecodable:
		s.Turn++
		return prependEffects(fx)(rejectUseless(ensureTombstone(s), "Your reply could not be read: "+clip.Text(f.Detail, errorShownBytes)+"."))
	case f.Class == model.TooLong:
		if next, more, again := tooLong(trialCopy(s)); again {
			return next, append(fx, more...)
		}
		return prependEffects(fx)(finishAgent(s, spec.Outcome{Reason: spec.PromptTooLong, Text: partialResult(s), Partial: true, Detail: f.Detail}))
	case f.Class == model.Refused:
		return prependEffects(fx)(finishAgent(s, spec.Outcome{Reason: spec.Refused, Text: partialResult(s), Partial: true, Detail: f.Detail}))
	case f.Class.Retryable() && s.mayRetry(s.Task.Limits.Retries):
		return prependEffects(fx)(retryLater(s, f.AfterMS))
	case isReplaceable(f.Class):
		return prependEffects(fx)(useFallback(s, fmt.Sprintf("%s: %s", f.Class, f.Detail)))
	}
	return prependEffects(fx)(finishAgent(s, spec.Outcome{Reason: spec.ModelError, Text: partialResult(s), Partial: true,
		Detail: fmt.Sprintf("%s: %s", f.Class, f.Detail)}))
}

// keepPartialReply records the part of a reply that has arrived, if any.
func keepPartialReply(s *State, r model.Reply) (*State, []Call) {
	if r.Message.Text == "" && len(r.Message.Calls) == 0 {
		return s, nil
	}
	return appendReply(s, r)
}

// ensureTombstone makes sure that the newest message is a tombstone of the assistant.
func ensureTombstone(s *State) *State {
	if s.newest().Tombstone {
		return s
	}
	return s.appendMessage(model.Message{Role: model.Assistant, Tombstone: true})
}

// Backoff between attempts of a failed model call, in milliseconds.
var backoffMS = [...]int64{500, 2000, 8000}

// retryLater waits for the retry timer; the next attempt has its own reservation.
func retryLater(s *State, afterMS int64) (*State, []Effect) {
	wait := max(backoffMS[min(s.Retries, len(backoffMS)-1)], min(afterMS, retryAfterMaxMS))
	s.Retries++
	s.Transition = spec.ModelRetry
	s = suspend(s, suspension{Why: AwaitsRetry, Then: ThenTurn, Due: s.Now + wait})
	return s, []Effect{Arm{Timer: retryTimer, Due: s.Suspended.Due}}
}

// outlasts reports whether a wait ends only when the agent's time is over.
func (c workClock) outlasts(afterMS int64, l *spec.Limits) bool {
	return afterMS > 0 && afterMS >= c.remaining(l)
}

// outOfTime continues without a provider that asks to wait beyond the agent's time
// limit: with another model if there is one, else the agent ends at once. Waiting
// would end it for the same reason, later.
func outOfTime(s *State, f Failed) (*State, []Effect) {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	detail := fmt.Sprintf("%s: %s; the provider asks to wait %s, the time limit leaves %s", f.Class, f.Detail,
		ms(min(f.AfterMS, retryAfterShownMS)), ms(max(0, s.remaining(&s.Task.Limits))))
	switch {
	case s.ClosingReason != "":
		return endFailedClosing(s, detail, originOf(f))
	case s.patience().alternative:
		return useFallback(s, detail)
	}
	return finishAgent(s, spec.Outcome{Reason: spec.Timeout, Text: partialResult(s), Partial: true, Detail: detail})
}

const retryAfterShownMS = 24 * 60 * 60 * 1000 // the longest wait that a message names

const retryAfterMaxMS = 5 * 60 * 1000 // a provider may not park a run for longer
