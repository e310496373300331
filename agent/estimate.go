package agent

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// tokenSense holds the loop's measurements of how a model counts tokens. It belongs to
// one route: another model counts differently.
type tokenSense struct {
	Route int
	Ratio budget.Ratio
	// Ceiling is the estimate of a prompt that the provider rejected as too long: the
	// window is not larger, whatever size the route names. 0: never.
	Ceiling int64
}

// tokenMeasures returns the measurements of the model in use.
func (s State) tokenMeasures() tokenSense {
	if s.Sense.Route != s.Route {
		return tokenSense{Route: s.Route}
	}
	return s.Sense
}

// Estimate is the likely size of the next prompt in tokens: the provider's report
// for the prefix, plus the count of the tail, calibrated by earlier reports of the
// same model. Only InputBound is strict.
func (s State) Estimate() int64 {
	ratio := s.tokenMeasures().Ratio
	if !s.Anchor.coversRoute(s.Route) {
		return ratio.Apply(guessTokens(s, s.Prompt()))
	}
	return s.Anchor.Tokens + ratio.Apply(budget.Guess(s.History[s.Anchor.Messages:]...))
}

// guessTokens is the estimate of a whole prompt before it is calibrated.
func guessTokens(s State, sent []model.Message) int64 {
	stable, volatile := systemPrompt(s)
	return budget.MessageTokens + budget.GuessText(stable) + budget.GuessText(volatile) + budget.GuessTools(s.Task.Tools) + budget.Guess(sent...)
}

// calibrate learns from a report: it compares the provider's count with the
// estimate, for the part of the prompt that was only estimated when it was sent.
func calibrate(s State, r model.Reply) State {
	if !r.UsageKnown || s.HookEffects.changedPrompt() {
		return s
	}
	know := s.tokenMeasures()
	if s.Anchor.coversRoute(s.Route) {
		know.Ratio = know.Ratio.Sample(r.Usage.Prompt()-s.Anchor.Tokens, budget.Guess(s.History[s.Anchor.Messages:]...))
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
	s := adoptHistory(State{Task: t, ImportedHistory: importedHistory{Messages: past}})
	s.tools = toolPermissions(s.Task)
	return restoreJournal(s).appendMessage(firstMessage(t)).attemptRequest()
}

// Counts reports whether token counts of texts are useful: only a loop that
// watches its window estimates.
func (s State) Counts() bool { return s.contextLimits().threshold() > 0 }

// contextWindow is how many tokens a prompt and its reply may have together; 0 is unknown.
func (s State) contextWindow() int64 {
	known, refused := s.currentModel().Window, s.tokenMeasures().Ceiling
	if known == 0 || refused > 0 && refused < known {
		return refused
	}
	return known
}

// resultTokens is the estimate of a call's result: the shell's count, if that is plausible.
func (c Call) resultTokens() int64 {
	if c.Tokens <= 0 || c.Tokens > budget.Text(c.Result.Text) {
		return budget.GuessText(c.Result.Text)
	}
	return c.Tokens
}
