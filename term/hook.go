package term

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
)

// ofHook is the gist of what hooks answered, and of what came of it.
func ofHook(e client.Event) (string, bool) {
	switch e.Kind {
	case "hook.fired":
		d, ok := decode[agent.HookFired](e)
		return words(string(d.Point), d.Hook, string(d.Decision), d.Call, d.Tool, why("failed: ", d.Failed), d.Text), ok
	case "tool.denied", "tool.approved":
		d, ok := decode[agent.ToolDecided](e)
		return words(d.Call, d.Tool, string(d.Decision), why("by ", strings.Join(d.By, ", ")), d.Why, d.Args), ok
	case "guardrail.triggered", "guardrail.escalated":
		d, ok := decode[agent.GuardrailFired](e)
		return words(string(d.Point), strings.Join(d.Guardrails, ", "), string(d.Decision), d.Level, d.Why), ok
	case "context.transformed":
		d, ok := decode[agent.ContextTransformed](e)
		return fmt.Sprintf("%s  %s instead of %d", strings.Join(d.Hooks, ", "), count(d.SentMessages, "message"), d.Messages), ok
	}
	return "", false
}

// why puts a word before a text that is there.
func why(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}

// words joins what is there.
func words(list ...string) string {
	var said []string
	for _, w := range list {
		if w != "" {
			said = append(said, w)
		}
	}
	return strings.Join(said, "  ")
}
