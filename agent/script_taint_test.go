package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// withTaint adds the text from outside to a fact whose author has read it: `tainted=TOOL`, of the agent root-9-9.
func withTaint(t *testing.T, d *datadriven.TestData, f agent.Fact) agent.Fact {
	t.Helper()
	tool := argumentValue(t, d, "tainted")
	if tool == "" {
		return f
	}
	mark := &spec.Taint{Source: "tool", Agent: "root-9-9", Tool: tool, Call: "3-0"}
	switch f := f.(type) {
	case agent.Submitted:
		f.Task.Tainted = mark
		return f
	case agent.Messaged:
		f.Tainted = mark
		return f
	case agent.Returned:
		f.Tainted = mark
		return f
	case agent.Recalled:
		f.Tainted = mark
		return f
	}
	t.Fatalf("%s: %s carries no taint", d.Pos, f.Kind())
	return nil
}

// printTaint prints which text from outside an agent has read.
func printTaint(m *spec.Taint) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf(" tainted=%s:%s:%s", m.Agent, m.Tool, m.Call)
}

// taintOf is the text from outside that an effect carries to others.
func taintOf(fx agent.Effect) *spec.Taint {
	switch e := fx.(type) {
	case agent.Delegate:
		return e.Tainted
	case agent.Send:
		return e.Tainted
	case agent.Backlog:
		return e.Tainted
	case agent.Messaged:
		return e.Tainted
	case agent.Finish:
		return e.Outcome.Tainted
	case agent.CallTool:
		if e.Tainted {
			return &spec.Taint{Agent: "yes"}
		}
	}
	return nil
}

// parseTaintLine reads the lines `taint MODE`, `taint-files` and `allow-tainted RULE` about permissions.
func parseTaintLine(p *spec.Permissions, line string) bool {
	word, text, _ := strings.Cut(line, " ")
	switch word {
	case "taint":
		p.Taint = text
	case "taint-files":
		p.TaintFiles = true
	case "allow-tainted":
		p.Allow = append(p.Allow, spec.PermissionRule{Text: text, From: word, AllowsTainted: true})
	default:
		return false
	}
	return true
}
