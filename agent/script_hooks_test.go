package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// parseHooks are those of a task's line: hooks=(POINT:NAME, POINT/TOOLS:NAME:FAILING,
// POINT:NAME::report, …).
func parseHooks(t *testing.T, d *datadriven.TestData) []spec.Hook {
	t.Helper()
	arg, ok := d.Arg("hooks")
	if !ok {
		return nil
	}
	var list []spec.Hook
	for _, v := range arg.Vals {
		parts := append(strings.Split(v, ":"), "", "")
		point, tools, _ := strings.Cut(parts[0], "/")
		h := spec.Hook{Name: parts[1], Point: spec.HookPoint(point), Tools: tools, Failing: spec.HookDecision(parts[2]), Report: parts[3] == "report"}
		if parts[3] == "root" || parts[3] == "child" {
			h.Of = parts[3]
		}
		if err := h.Validate(); err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		list = append(list, h)
	}
	return list
}

// hookedFact is what hooks answered to ID, line by line: `NAME DECISION TEXT`,
// `NAME failed WHY`, `NAME args JSON`, `NAME messages JSON`, `NAME system TEXT`; `pass` decides nothing. DECISION:SEVERITY adds a severity.
func hookedFact(t *testing.T, d *datadriven.TestData) agent.Hooked {
	t.Helper()
	f := agent.Hooked{ID: firstArgument(d)}
	point, _, _ := strings.Cut(f.ID, ".")
	f.Point = spec.HookPoint(point)
	for _, line := range strings.Split(d.Input, "\n") {
		name, rest, _ := strings.Cut(line, " ")
		word, text, _ := strings.Cut(rest, " ")
		a := spec.HookAnswer{Hook: name, Text: text}
		switch word {
		case "pass":
		case "failed":
			a.Failed, a.Text = text, ""
		case "args":
			a.Args, a.Text = text, ""
		case "system":
			a.Text, a.System = "", &text
		case "messages":
			a.Text, a.Messages = "", []model.Message{}
			if err := json.Unmarshal([]byte(text), &a.Messages); err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
		default:
			decision, severity, _ := strings.Cut(word, ":")
			a.Decision, a.Severity = spec.HookDecision(decision), spec.Severity(severity)
		}
		if name != "" {
			f.Answers = append(f.Answers, a)
		}
	}
	return f
}

// runHooks prints what is asked, and of what.
func runHooks(e agent.RunHooks) string {
	names := make([]string, len(e.Hooks))
	for i, h := range e.Hooks {
		names[i] = h.Name
	}
	about := ""
	if in := e.Input; in.Tool != "" {
		about = fmt.Sprintf(" %s %s", in.Tool, in.Args)
		if in.Result != "" {
			about += fmt.Sprintf(" error=%t %q", in.Error, in.Result)
		}
		if in.Size != 0 {
			about += fmt.Sprintf(" size=%d", in.Size)
		}
	} else if in.Text != "" {
		about = fmt.Sprintf(" %q", in.Text)
	} else if len(in.Messages) > 0 {
		about = fmt.Sprintf(" messages=%d", len(in.Messages))
	}
	return fmt.Sprintf("run-hooks %s turn=%d [%s]%s", e.ID, e.Turn, strings.Join(names, " "), about)
}
