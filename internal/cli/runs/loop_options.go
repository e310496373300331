package runs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/term"
)

// loopOptionPairs lists the loop options of a run, including those that are off.
func loopOptionPairs(m spec.LoopOptions) [][2]string {
	pairs := [][2]string{
		{"context", contextText(m.Context)},
		{"watch", watchText(m.Watch)},
		{"breaker", breakerText(m.Breaker)},
		{"tool retries", orOff(m.ToolRetries > 0, fmt.Sprintf("up to %d after a temporary failure", m.ToolRetries))},
		{"questions to people", questionsText(m)},
		{"journal", orOff(m.Journal, "kept by the agent")},
	}
	var fallbacks []string
	for _, f := range m.Fallbacks {
		fallbacks = append(fallbacks, f.Name)
	}
	pairs = append(pairs, [2]string{"fallbacks", orOff(len(fallbacks) > 0, strings.Join(fallbacks, ", "))})
	hooks := make([]string, len(m.Hooks))
	for i, h := range m.Hooks {
		hooks[i] = hookText(h)
	}
	pairs = append(pairs, [2]string{"hooks", orOff(len(hooks) > 0, strings.Join(hooks, "\n"))})
	if r := m.Require; r.Evidence != nil || r.Schema != "" {
		pairs = append(pairs, [2]string{"required", requireText(r)})
	}
	if c := m.Continue; c.Tokens > 0 {
		pairs = append(pairs, [2]string{"continues", fmt.Sprintf("until %d %% of %s output tokens are used, unless %d continuations in a row bring under %d each",
			c.Percent, term.FormatTokens(c.Tokens), c.Rounds, c.Small)})
	}
	if m.Dynamic != "" {
		pairs = append(pairs, [2]string{"dynamic", fmt.Sprintf("%d bytes of the prompt follow the cache breakpoint", len(m.Dynamic))})
	}
	return pairs
}

// ownLoopOptionPairs lists the loop options that a definition sets for its agent.
func ownLoopOptionPairs(m *spec.LoopOptions) [][2]string {
	if m == nil {
		return nil
	}
	said := map[string]bool{"context": m.Context.Percent != 0, "watch": m.Watch.Of != 0, "breaker": m.Breaker != spec.Breaker{},
		"tool retries": m.ToolRetries != 0, "questions to people": m.Unattended, "fallbacks": len(m.Fallbacks) > 0, "hooks": len(m.Hooks) > 0, "required": true, "continues": true}
	return slices.DeleteFunc(loopOptionPairs(*m), func(pair [2]string) bool { return !said[pair[0]] })
}

func orOff(on bool, text string) string {
	if !on {
		return "off"
	}
	return text
}

func contextText(c spec.Context) string {
	switch {
	case c.Percent < 0, c.Percent == 0 && c.Tail == 0:
		return "never compacted"
	case c.Percent == 0:
		return fmt.Sprintf("compacted only when the provider reports a prompt that is too long; keeps the last %d messages", c.Tail)
	}
	text := fmt.Sprintf("compacted at %d %% of the window; keeps the last %d messages, or %d if that repeats within %d turns", c.Percent, c.Tail, c.PruneTail, c.Within)
	if c.Model != nil {
		text += "; summaries by " + c.Model.Name
	}
	return text
}

func watchText(w spec.Watch) string {
	if w.Of <= 0 || w.Identical <= 0 && w.Pattern <= 0 && w.Stuck <= 0 {
		return "off"
	}
	text := fmt.Sprintf("of the last %d calls: %d identical, %d of one tool, %d without progress", w.Of, w.Identical, w.Pattern, w.Stuck)
	if len(w.Polling) > 0 {
		text += "; polling tools: " + strings.Join(w.Polling, ", ")
	}
	return text
}

func breakerText(b spec.Breaker) string {
	var parts []string
	if b.Failures > 0 {
		parts = append(parts, fmt.Sprintf("%d failures of a tool on one target", b.Failures))
	}
	if b.Forbidden > 0 {
		parts = append(parts, fmt.Sprintf("%d forbidden proposals in a row", b.Forbidden))
	}
	return orOff(len(parts) > 0, strings.Join(parts, ", "))
}

func hookText(h spec.Hook) string {
	text := h.Name + " at " + string(h.Point)
	if h.Tools != "" {
		text += " of " + h.Tools
	}
	if h.Command != "" {
		text += ": " + h.Command
	}
	if h.Failing != "" {
		text += fmt.Sprintf(" (if it fails: %s)", h.Failing)
	}
	if h.Report {
		text += " (report only)"
	}
	return text
}

func requireText(r spec.Require) string {
	var parts []string
	for _, e := range r.Evidence {
		part := "a result of " + e.Tool
		if e.Contains != "" {
			part += fmt.Sprintf(" that contains %q", e.Contains)
		}
		parts = append(parts, part)
	}
	if r.Schema != "" {
		parts = append(parts, "an answer that satisfies its schema")
	}
	return strings.Join(parts, ", ")
}

// questionsText says how long a question to a person stays open.
func questionsText(m spec.LoopOptions) string {
	switch {
	case m.Unattended:
		return "off: the run is unattended"
	case !m.AskPeople:
		return "off"
	case m.QuestionMS == 0:
		return "allowed"
	}
	return "allowed, open for " + console.Took(m.QuestionMS)
}
