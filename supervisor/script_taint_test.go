package supervisor_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/supervisor"
)

// withTaint adds the text from outside that the sender of a fact has read: `tainted=TOOL`.
func withTaint(t *testing.T, d *datadriven.TestData, f supervisor.Fact) supervisor.Fact {
	t.Helper()
	tool := argValue(t, d, "tainted")
	if tool == "" {
		return f
	}
	mark := &spec.Taint{Source: "tool", Agent: spec.ID(argValue(t, d, "from")), Tool: tool, Call: "0-0"}
	switch f := f.(type) {
	case agent.Delegate:
		f.Tainted = mark
		return f
	case agent.Send:
		f.Tainted = mark
		return f
	case agent.Backlog:
		f.Tainted = mark
		return f
	case agent.Finish:
		f.Outcome.Tainted = mark
		return f
	}
	t.Fatalf("%s: %s carries no taint", d.Pos, f.Kind())
	return nil
}

// printTaint prints the text from outside that a fact for an agent carries, and that the run reads private data.
func printTaint(f agent.Fact) string {
	var mark *spec.Taint
	text := ""
	switch f := f.(type) {
	case agent.Submitted:
		if mark = f.Task.Tainted; f.Task.Private {
			text = " private"
		}
	case agent.Messaged:
		mark = f.Tainted
	case agent.Returned:
		mark = f.Tainted
	}
	if mark != nil {
		text += " tainted=" + string(mark.Agent) + ":" + mark.Tool
	}
	return text
}
