package agent

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/estimate"
	"github.com/troupe-run/troupe/model"
)

// Estimate is the likely size of the next prompt in tokens: the provider's report
// for the prefix, plus the count of the tail, calibrated by earlier reports of the
// same model. Only inputBound is strict.
func (s *State) Estimate() int64 {
	ratio := s.tokenMeasures().Ratio
	if !s.hasAnchor() {
		return ratio.Apply(guessTokens(s, s.Prompt()))
	}
	return s.Anchor.Tokens + ratio.Apply(estimate.Messages(s.History[s.Anchor.Messages:]...))
}

// guessTokens is the estimate of a whole prompt before it is calibrated.
func guessTokens(s *State, sent []model.Message) int64 {
	stable, volatile := systemPrompt(s)
	return estimate.MessageTokens + estimate.Text(stable) + estimate.Text(volatile) + estimate.Tools(s.Task.Tools) + estimate.Messages(sent...)
}

// calibrate learns from a report: it compares the provider's count with the
// estimate, for the part of the prompt that was only estimated when it was sent.
func calibrate(s *State, r model.Reply) *State {
	if !r.UsageKnown || s.HookEffects.changedPrompt() {
		return s
	}
	know := s.tokenMeasures()
	if s.hasAnchor() {
		know.Ratio = know.Ratio.Sample(r.Usage.Prompt()-s.Anchor.Tokens, estimate.Messages(s.History[s.Anchor.Messages:]...))
	} else {
		know.Ratio = know.Ratio.Sample(r.Usage.Prompt(), guessTokens(s, s.Prompt()))
	}
	s.Sense = know
	return s
}

// FirstAttemptRequest returns the request of a task's first turn, including imported history. The supervisor admits an
// agent (root or child) by it.
func FirstAttemptRequest(t spec.Task, past ...model.Message) budget.AttemptRequest {
	t.Limits = t.Limits.WithDefaults(t.Depth)
	s := adoptHistory(&State{Task: t, ImportedHistory: importedHistory{Messages: past}})
	s.tools = toolPermissions(s.Task)
	return restoreJournal(s).appendMessage(firstMessage(t)).attemptRequest()
}

// Counts reports whether token counts of texts are useful: only a loop that
// watches its window estimates.
func (s *State) Counts() bool { return s.contextLimits().threshold() > 0 }

// resultTokens is the estimate of a call's result: the shell's count, if that is plausible.
func (c Call) resultTokens() int64 {
	if c.Tokens <= 0 || c.Tokens > budget.Text(c.Result.Text) {
		return estimate.Text(c.Result.Text)
	}
	return c.Tokens
}
