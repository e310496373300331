package agent

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// beginClosingTurn begins the one closing turn that an agent has left when a limit ends it.
func beginClosingTurn(s *State, reason spec.Reason, transition spec.Transition) (*State, []Effect) {
	s.ClosingReason = reason
	return runHooksBeforeModel(s, transition)
}

const (
	closingPrompt = "Stop here: %s. Call no more tools. Say what you found so far, and what is left undone."
	closingWhyMax = 64
)

func closingText(why spec.Reason) string {
	word := map[spec.Reason]string{spec.TokenBudget: "tokens", spec.CostBudget: "money", spec.MaxTurns: "turns", spec.MaxToolCalls: "tool calls",
		spec.Timeout: "time"}[why]
	if word == "" {
		return fmt.Sprintf(closingPrompt, "the supervisor of this run asks for the end")
	}
	return fmt.Sprintf(closingPrompt, "the limit on "+word+" is reached")
}

// endClosingTurn ends the agent after its closing turn. Calls that the model made nevertheless
// are answered, so that the history stays well formed.
func endClosingTurn(s *State, text string, calls []Call) (*State, []Effect) {
	text = clip.Text(text, answerBytesMax)
	s = refuseCalls(s, calls, "not run: this was the closing turn")
	if strings.TrimSpace(text) == "" {
		text = partialResult(s)
	}
	return finishAgent(s, spec.Outcome{Reason: s.ClosingReason, Text: text, Partial: true, Detail: s.Grant.By.explain(s.Grant.Detail)})
}

// failureOrigin says what a closing call failed on.
type failureOrigin int

const (
	failedOnCall     failureOrigin = iota // its cost, its prompt, its reply, or a refusal that passes by itself
	failedOnProvider                      // at no cost, and another call would have failed as well
)

// endFailedClosing ends the agent after its closing call failed. If nothing was spent before, and the call failed on the
// provider, the provider is the reason and not the limit: no higher limit would have helped.
func endFailedClosing(s *State, failure string, origin failureOrigin) (*State, []Effect) {
	reason := s.ClosingReason
	isBudget := reason == spec.TokenBudget || reason == spec.CostBudget
	// An earlier failure, also of another model, may have spent its reservation in full.
	hasSpent := s.Turn > 0 || s.Retries > 0 || s.Route > 0 || s.Spent != (budget.Amount{})
	if isBudget && origin == failedOnProvider && !hasSpent {
		reason = spec.ModelError
	} else {
		failure = "the closing call failed: " + failure
	}
	return finishAgent(s, spec.Outcome{Reason: reason, Text: partialResult(s), Partial: true, Detail: failure})
}

// originOf returns what a call failed on.
func originOf(f Failed) failureOrigin {
	switch f.Class {
	case model.TooLong, model.Refused, model.Undecodable, model.Aborted, model.RateLimit, model.Overload:
		return failedOnCall
	}
	if f.Unbilled {
		return failedOnProvider
	}
	return failedOnCall
}
