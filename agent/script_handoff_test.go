package agent_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// printHandoff says how a handoff differs from a delegation.
func printHandoff(e agent.Delegate) string {
	if !e.HandsOff {
		return ""
	}
	text := " handoff"
	for _, evidence := range e.Require.Evidence {
		text += " requires=" + evidence.Tool
	}
	if e.Require.Schema != "" {
		text += " answer=" + e.Require.Schema
	}
	if len(e.Obstacles) > 0 {
		text += fmt.Sprintf(" obstacles=%d", len(e.Obstacles))
	}
	if e.Journal != "" {
		text += " journal=" + e.Journal
	}
	return text
}

// printPassedOn prints a message that an agent passes on to the one that has its conversation.
func printPassedOn(e agent.Effect) string {
	if m, ok := e.(agent.Messaged); ok {
		text := fmt.Sprintf("pass-on message of %s %q", m.From, m.Text)
		if m.Call != "" {
			text += " call=" + m.Call
		}
		return text
	}
	f := e.(agent.Steered)
	if f.Now {
		return fmt.Sprintf("pass-on now %q", f.Text)
	}
	return fmt.Sprintf("pass-on %q", f.Text)
}

// handedOutcome is how the agent ended that has the conversation: `ended=REASON`, and its `detail`.
func handedOutcome(t *testing.T, d *datadriven.TestData) *spec.Outcome {
	t.Helper()
	reason := spec.Reason(argumentValue(t, d, "ended"))
	if reason == "" {
		return nil
	}
	return &spec.Outcome{Reason: reason, Text: d.Input, Partial: reason != spec.Completed, Detail: argumentValue(t, d, "detail")}
}
