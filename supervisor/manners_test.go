package supervisor_test

import (
	"reflect"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// What is said with the goal is about the root's answer; a child has what its
// definition says (A22, A27).
//
//behaviour:shows A22
func TestWhatIsRequiredOfARunIsRequiredOfItsRoot(t *testing.T) {
	looked := agent.Evidence{Tool: "search", Contains: "A"}
	wrote := agent.Evidence{Tool: "write"}
	o := supervisor.Opened{Run: "r", Goal: "Compare.", Root: "lead",
		Manners: agent.Manners{Require: agent.Require{Evidence: []agent.Evidence{looked}, Schema: `{"type":"object"}`},
			Continue: agent.Continue{Tokens: 9000}, ToolRetries: 3},
		Definitions: []supervisor.Definition{
			{Name: "lead", Manners: agent.Manners{Require: agent.Require{Evidence: []agent.Evidence{wrote}, Schema: `{}`, Tries: 4}}},
			{Name: "hand", Manners: agent.Manners{Require: agent.Require{Evidence: []agent.Evidence{wrote}}}},
			{Name: "clerk"},
		},
		Tools: []model.ToolSpec{{Name: "delegate"}},
	}
	tasks := map[string]agent.Manners{}
	s := supervisor.State{}
	do := func(from agent.ID, f supervisor.Fact) {
		var fx []supervisor.Effect
		s, fx = supervisor.Step(s, supervisor.Event{From: from, Fact: f})
		for _, e := range fx {
			if tell, ok := e.(supervisor.Tell); ok {
				if sub, ok := tell.Fact.(agent.Submitted); ok {
					tasks[sub.Task.Name] = sub.Task.Manners
				}
			}
		}
	}
	do("", o)
	do(agent.Root, agent.Delegate{Call: "1-0", Child: "root-1-0", Name: "hand", Goal: "Write."})
	do(agent.Root, agent.Delegate{Call: "1-1", Child: "root-1-1", Name: "clerk", Goal: "Look."})
	for name, want := range map[string]agent.Manners{
		"lead": {Require: agent.Require{Evidence: []agent.Evidence{looked, wrote}, Schema: `{"type":"object"}`, Tries: 4},
			Continue: agent.Continue{Tokens: 9000}, ToolRetries: 3},
		"hand":  {Require: agent.Require{Evidence: []agent.Evidence{wrote}}, ToolRetries: 3},
		"clerk": {ToolRetries: 3},
	} {
		if got, ok := tasks[name]; !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
