package agent

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
)

// beginClosingTurn begins the one closing turn that an agent has left when a limit ends it.
func beginClosingTurn(s State, reason spec.Reason, transition spec.Transition) (State, []Effect) {
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
func endClosingTurn(s State, text string, calls []Call) (State, []Effect) {
	text = clip.Text(text, answerBytesMax)
	s = refuseCalls(s, calls, "not run: this was the closing turn")
	if strings.TrimSpace(text) == "" {
		text = partialResult(s)
	}
	return finishAgent(s, spec.Outcome{Reason: s.ClosingReason, Text: text, Partial: true, Detail: s.Grant.By.explain(s.Grant.Detail)})
}
