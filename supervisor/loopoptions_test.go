package supervisor_test

import (
	"reflect"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// What is said with the goal is about the root's answer; a child has what its
// definition says (A22, A27).
//
//behaviour:shows A22
func TestRequirementsOfARunApplyToItsRoot(t *testing.T) {
	looked := spec.Evidence{Tool: "search", Contains: "A"}
	wrote := spec.Evidence{Tool: "write"}
	o := supervisor.Opened{Run: "r", Goal: "Compare.", Root: "lead",
		LoopOptions: spec.LoopOptions{Require: spec.Require{Evidence: []spec.Evidence{looked}, Schema: `{"type":"object"}`},
			Continue: spec.Continue{Tokens: 9000}, ToolRetries: 3},
		Definitions: []supervisor.Definition{
			{Name: "lead", LoopOptions: spec.LoopOptions{Require: spec.Require{Evidence: []spec.Evidence{wrote}, Schema: `{}`, Tries: 4}}},
			{Name: "hand", LoopOptions: spec.LoopOptions{Require: spec.Require{Evidence: []spec.Evidence{wrote}}}},
			{Name: "clerk"},
		},
		Tools: []model.ToolSpec{{Name: "delegate"}},
	}
	tasks := map[string]spec.LoopOptions{}
	s := supervisor.State{}
	do := func(from spec.ID, f supervisor.Fact) {
		var fx []supervisor.Effect
		var out supervisor.Output
		s, out = supervisor.Step(s, supervisor.Input{From: from, Fact: f})
		fx = out.Effects
		for _, e := range fx {
			if tell, ok := e.(supervisor.Tell); ok {
				if sub, ok := tell.Fact.(agent.Submitted); ok {
					tasks[sub.Task.Name] = sub.Task.LoopOptions
				}
			}
		}
	}
	do("", o)
	do(spec.Root, agent.Delegate{Call: "1-0", Child: "root-1-0", Name: "hand", Goal: "Write."})
	do(spec.Root, agent.Delegate{Call: "1-1", Child: "root-1-1", Name: "clerk", Goal: "Look."})
	for name, want := range map[string]spec.LoopOptions{
		"lead": {Require: spec.Require{Evidence: []spec.Evidence{looked, wrote}, Schema: `{"type":"object"}`, Tries: 4},
			Continue: spec.Continue{Tokens: 9000}, ToolRetries: 3},
		"hand":  {Require: spec.Require{Evidence: []spec.Evidence{wrote}}, ToolRetries: 3},
		"clerk": {ToolRetries: 3},
	} {
		if got, ok := tasks[name]; !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
