package term

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// describeHook summarizes the answers of hooks and their effect.
func describeHook(e client.Event) (string, bool) {
	switch e.Kind {
	case event.KindHookFired:
		d, ok := decodeData[event.HookFired](e)
		return joinNonEmpty(string(d.Point), d.Hook, string(d.Decision), d.Call, d.Tool, prefixNonEmpty("failed: ", d.Failed), d.Text), ok
	case event.KindToolDenied, event.KindToolApproved:
		d, ok := decodeData[event.ToolDecided](e)
		return joinNonEmpty(d.Call, d.Tool, string(d.Decision), prefixNonEmpty("by ", strings.Join(d.By, ", ")), d.Why, d.Args), ok
	case event.KindGuardrailTriggered, event.KindGuardrailEscalated:
		d, ok := decodeData[event.GuardrailFired](e)
		return joinNonEmpty(string(d.Point), strings.Join(d.Guardrails, ", "), string(d.Decision), string(d.Severity), d.Level, d.Call, d.Tool, d.Why), ok
	case event.KindContextTransformed:
		d, ok := decodeData[event.ContextTransformed](e)
		return fmt.Sprintf("%s  %s instead of %d", strings.Join(d.Hooks, ", "), FormatCount(d.SentMessages, "message"), d.Messages), ok
	}
	return "", false
}

// prefixNonEmpty puts a word before a text that is not empty.
func prefixNonEmpty(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}

// joinNonEmpty joins the words that are not empty.
func joinNonEmpty(list ...string) string {
	var said []string
	for _, w := range list {
		if w != "" {
			said = append(said, w)
		}
	}
	return strings.Join(said, "  ")
}
