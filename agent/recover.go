package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/model"
)

// useless takes a reply that says nothing: it stays in the record as a
// tombstone, costs a turn, and the model reads what was wrong.
func useless(s State, what string) (State, []Effect) {
	s.History = slices.Clone(s.History)
	s.History[len(s.History)-1].Tombstone = true
	s = s.say(model.Message{Role: model.User, Text: what + " Reply with plain text if you are done, or call one of the tools: " + s.check.names + "."})
	s.Useless++
	if s.Useless >= s.Task.Limits.Malformed {
		return finish(s, Outcome{Reason: Malformed, Text: s.found(), Partial: true,
			Detail: fmt.Sprintf("%d useless replies in a row", s.Useless)})
	}
	return nextTurn(s, MalformedRecovery)
}

const continuePrompt = "You were cut off. Continue from where you stopped."

// cut takes a text that met the output limit: the model goes on, at most Cuts
// times in a row, and that costs no turn.
func cut(s State) (State, []Effect) {
	s.Cuts++
	if s.Cuts > s.Task.Limits.Cuts {
		return finish(s, Outcome{Reason: MaxOutputTokens, Text: s.answer(), Partial: true})
	}
	s.Turn--
	s = s.say(model.Message{Role: model.User, Text: continuePrompt})
	return nextTurn(s, OutputRecovery)
}

// said is what the model has just said, joined from the pieces of a reply that
// was cut. What the loop or a hook says between two pieces does not part them;
// what a person says does.
func (s State) said() string {
	var pieces []string
	goesOn := true // what comes next began a piece that was cut
	for i := len(s.History) - 1; i >= s.Recalled; i-- {
		m := s.History[i]
		switch {
		case m.Tombstone:
		case m.Role == model.Assistant && goesOn && len(m.Calls) == 0:
			pieces, goesOn = append(pieces, m.Text), false
		case m.Role != model.User || slices.Contains(s.Heard, i):
			i = 0
		case m.Text == continuePrompt:
			goesOn = true
		}
	}
	slices.Reverse(pieces)
	return strings.Join(pieces, "")
}

// failed takes an attempt without an answer: what had arrived stays in the
// record as a tombstone, the lease is settled, and the loop tries again as far
// as the class and the limits allow.
func failed(s State, f Failed) (State, []Effect) {
	if s.Phase != Thinking || f.Lease != s.Lease {
		return s, nil
	}
	s.ModelMS += f.TookMS
	if s.Purpose == ForSummary {
		return unsummarized(s, f)
	}
	if f.Unbilled {
		f.Reply.UsageKnown, f.Reply.Usage = true, model.Usage{}
	}
	if s.Cancel != nil {
		f.Reply.Message.Interrupted = f.Class == model.Aborted
		s, calls := s.keep(f.Reply)
		s, fx := s.settle(f.Reply, 0)
		return then(fx)(neverStarted(s, calls))
	}
	anchor, waits := s.Anchor, s.waits(f)
	s, _ = s.keep(f.Reply)
	if n := len(s.History) - 1; s.History[n].Role == model.Assistant && !s.History[n].Tombstone { //mutant:failed-partial-is-kept
		s.History = slices.Clone(s.History)
		s.History[n].Tombstone = true
	}
	s, fx := s.settle(f.Reply, 0)
	s.Anchor = anchor // what failed is no measure of the prompt
	if waits {
		s, fx = s.unused()
	}
	s, told := s.tell(HookStopFailure, fmt.Sprint(s.Lease), "", HookData{Text: fmt.Sprintf("%s: %s", f.Class, f.Detail), Error: true})
	fx = append(fx, told...)
	switch {
	case f.Class.Retryable() && s.pastClock(f.AfterMS):
		return then(fx)(outOfTime(s, f))
	case waits:
		return then(fx)(refused(s, f))
	case s.Ending != "":
		return then(fx)(finish(s, Outcome{Reason: s.Ending, Text: s.found(), Partial: true, Detail: f.Detail}))
	case f.Class == model.Undecodable:
		s.Turn++
		return then(fx)(useless(s.tombstoned(), "Your reply could not be read: "+clip(f.Detail, errorShown)+"."))
	case f.Class == model.TooLong:
		if next, more, again := tooLong(s); again {
			return next, append(fx, more...)
		}
		return then(fx)(finish(s, Outcome{Reason: PromptTooLong, Text: s.found(), Partial: true, Detail: f.Detail}))
	case f.Class == model.Refused:
		return then(fx)(finish(s, Outcome{Reason: Refused, Text: s.found(), Partial: true, Detail: f.Detail}))
	case f.Class.Retryable() && s.mayRetry():
		return then(fx)(retryLater(s, f.AfterMS))
	case replaceable(f.Class):
		return then(fx)(fallback(s, fmt.Sprintf("%s: %s", f.Class, f.Detail)))
	}
	return then(fx)(finish(s, Outcome{Reason: ModelError, Text: s.found(), Partial: true,
		Detail: fmt.Sprintf("%s: %s", f.Class, f.Detail)}))
}

// keep records what had arrived of a reply, if anything had.
func (s State) keep(r model.Reply) (State, []Call) {
	if r.Message.Text == "" && len(r.Message.Calls) == 0 {
		return s, nil
	}
	return s.take(r)
}

// tombstoned makes sure that the newest message is a tombstone of the assistant.
func (s State) tombstoned() State {
	if s.History[len(s.History)-1].Tombstone {
		return s
	}
	return s.say(model.Message{Role: model.Assistant, Tombstone: true})
}

// Backoff between attempts of a failed model call, in milliseconds.
var backoffMS = [...]int64{500, 2000, 8000}

// retryLater waits for the retry timer; the next attempt has a lease of its own.
func retryLater(s State, afterMS int64) (State, []Effect) {
	wait := max(backoffMS[min(s.Retries, len(backoffMS)-1)], min(afterMS, retryAfterMaxMS))
	s.Retries++
	s.Phase, s.Transition, s.RetryDue = Waiting, ModelRetry, s.Now+wait
	return s, []Effect{Arm{Timer: retryTimer, Due: s.RetryDue}}
}

// pastClock reports whether a wait ends only when the agent's time is over.
func (s State) pastClock(afterMS int64) bool {
	return afterMS > 0 && afterMS >= s.Began+s.Task.Limits.HardMS-s.Now
}

// outOfTime goes on without a provider that asks to wait beyond the agent's time
// limit: with another model where there is one, else the agent ends at once. To wait
// for the clock would end it for the same reason, later.
func outOfTime(s State, f Failed) (State, []Effect) {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	detail := fmt.Sprintf("%s: %s; the provider asks to wait %s, the time limit leaves %s", f.Class, f.Detail,
		ms(min(f.AfterMS, retryAfterShownMS)), ms(max(0, s.Began+s.Task.Limits.HardMS-s.Now)))
	switch {
	case s.Ending != "":
		return finish(s, Outcome{Reason: s.Ending, Text: s.found(), Partial: true, Detail: detail})
	case s.elsewhere():
		return fallback(s, detail)
	}
	return finish(s, Outcome{Reason: Timeout, Text: s.found(), Partial: true, Detail: detail})
}

const retryAfterShownMS = 24 * 60 * 60 * 1000 // the most that a message names

const retryAfterMaxMS = 5 * 60 * 1000 // a provider may not park a run for longer
