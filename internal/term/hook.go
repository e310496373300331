package term

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// ofHook summarizes the answers of hooks and their effect.
func ofHook(e client.Event) (string, bool) {
	switch e.Kind {
	case event.KindHookFired:
		d, ok := decode[event.HookFired](e)
		return words(string(d.Point), d.Hook, string(d.Decision), d.Call, d.Tool, why("failed: ", d.Failed), d.Text), ok
	case event.KindToolDenied, event.KindToolApproved:
		d, ok := decode[event.ToolDecided](e)
		return words(d.Call, d.Tool, string(d.Decision), why("by ", strings.Join(d.By, ", ")), d.Why, d.Args), ok
	case event.KindGuardrailTriggered, event.KindGuardrailEscalated:
		d, ok := decode[event.GuardrailFired](e)
		return words(string(d.Point), strings.Join(d.Guardrails, ", "), string(d.Decision), d.Level, d.Why), ok
	case event.KindContextTransformed:
		d, ok := decode[event.ContextTransformed](e)
		return fmt.Sprintf("%s  %s instead of %d", strings.Join(d.Hooks, ", "), count(d.SentMessages, "message"), d.Messages), ok
	}
	return "", false
}

// why puts a word before a text that is not empty.
func why(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}

// words joins the words that are not empty.
func words(list ...string) string {
	var said []string
	for _, w := range list {
		if w != "" {
			said = append(said, w)
		}
	}
	return strings.Join(said, "  ")
}
