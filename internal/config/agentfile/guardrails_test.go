package agentfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
)

// TestGuardrailsOfFiles: in an agent file they are hooks of the agent, in a settings file they are for all agents.
func TestGuardrailsOfFiles(t *testing.T) {
	list := `[secrets, injection:end:critical, {guardrail: size, bytes: 9, at: tool_result, tools: "Bash|Read"}, {guardrail: patterns, label: ticket, pattern: 'SEC-\d+', at: [output], action: warn, severity: low}]`
	def, notes, err := Parse("x.md", []byte("---\nname: x\ndescription: y\nx-troupe:\n  guardrails: "+list+"\n---\np"))
	if err != nil || len(notes) > 0 || len(def.Hooks) != 7 {
		t.Fatalf("%v, %v, %+v", err, notes, def.Hooks)
	}
	want := []spec.Hook{
		{Name: "guardrail:size", Point: spec.HookToolResult, Tools: "(?:shell|read_file)|read_result", Failing: spec.HookDeny, Severity: "low",
			Rules: `{"action":"block","tools":"shell|read_file","bytes":9}`},
		{Name: "guardrail:patterns", Point: spec.HookOutput, Report: true, Severity: "low", Rules: `{"action":"warn","label":"ticket","pattern":"SEC-\\d+"}`},
	}
	if got := def.Hooks[5:]; !reflect.DeepEqual(got, want) {
		t.Errorf("hooks: %+v", got)
	}
	if h := def.Hooks[4]; h.Failing != spec.HookTrip || h.Severity != "critical" {
		t.Errorf("a guardrail that ends: %+v", h)
	}
	shared, err := parseShared("troupe.yaml", []byte("max_turns: 3\nguardrails: "+list+"\n"))
	if err != nil || len(shared.Guardrails) != 4 || shared.Guardrails[3].Pattern != `SEC-\d+` {
		t.Errorf("%v, %+v", err, shared.Guardrails)
	}
	if shared, err = parseShared("troupe.yaml", []byte("guardrails: secrets")); err != nil || len(shared.Guardrails) != 1 {
		t.Errorf("one word: %v, %+v", err, shared.Guardrails)
	}
	_, err = parseShared("troupe.yaml", []byte("max_turns: 3\nguardrails:\n  - {guardrail: secrets, action: stop}\n"))
	if !errors.Is(err, ErrField) || !strings.Contains(err.Error(), `troupe.yaml:3: `) || !strings.Contains(err.Error(), "write warn, block, end") {
		t.Error(err)
	}
}
