package supervisor_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/supervisor"
)

// parseRequire reads what a task still requires, as `evidence=(TOOL, …)` and `answer=SCHEMA`.
func parseRequire(t *testing.T, d *datadriven.TestData) (r spec.Require) {
	t.Helper()
	if arg, ok := d.Arg("evidence"); ok {
		for _, tool := range arg.Vals {
			r.Evidence = append(r.Evidence, spec.Evidence{Tool: tool})
		}
	}
	r.Schema = argValue(t, d, "answer")
	return r
}

// printRequire prints the evidence that a task requires, and the schema of its answer.
func printRequire(t spec.Task) (text string) {
	for _, e := range t.LoopOptions.Require.Evidence {
		text += " requires=" + e.Tool
	}
	if t.Depth == 0 && t.LoopOptions.Require.Schema != "" {
		text += " answer=" + t.LoopOptions.Require.Schema
	}
	return text
}

// printHanded says how the agent ended that has the conversation.
func printHanded(f agent.Returned) string {
	if f.Outcome == nil {
		return ""
	}
	return fmt.Sprintf(" ended=%s partial=%t", f.Outcome.Reason, f.Outcome.Partial)
}

// passedOn is a message that an agent passes on: of a person, or of the agent `of`.
func passedOn(t *testing.T, d *datadriven.TestData) supervisor.Fact {
	t.Helper()
	if d.Cmd == "messaged" {
		return agent.Messaged{From: spec.ID(argValue(t, d, "of")), Name: "helper", Text: d.Input}
	}
	return agent.Steered{Text: d.Input}
}
