package supervisor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// TestModelIsToldOfExactlyTheAgentsThatItMayCall: for each agent of a team, the description of
// delegate names an agent if and only if a delegation to it begins a child.
//
//behaviour:shows H1
func TestModelIsToldOfExactlyTheAgentsThatItMayCall(t *testing.T) {
	all := []supervisor.Definition{{Name: "free", Description: "Is free."}, {Name: "strict", Delegates: []string{"free", "gone"}},
		{Name: "alone", Delegates: []string{}}, {Name: "quiet", OnlyNamed: true}, {Name: "knows", Delegates: []string{"quiet"}},
		{Name: "wordy", Description: strings.Repeat("word ", 2*supervisor.DelegateTextMax)}}
	for _, root := range all {
		o := supervisor.Opened{Run: "r", Goal: "Go.", Root: root.Name, Definitions: all, Tools: []model.ToolSpec{agent.DelegateSpec("", true)}}
		begun, out := supervisor.Step(supervisor.State{}, supervisor.Input{N: 1, Fact: o})
		task, _ := submittedTo(out.Effects, spec.Root)
		told := ""
		if len(task.Tools) > 0 {
			told = task.Tools[0].Description
		}
		if len(told) > supervisor.DelegateTextMax+1024 {
			t.Errorf("%s is told %d bytes", root.Name, len(told))
		}
		for _, d := range all {
			_, out := supervisor.Step(begun, supervisor.Input{From: spec.Root, Fact: agent.Delegate{Call: "1-0", Child: "root-1-0", Name: d.Name, Goal: "Look."}})
			_, begins := submittedTo(out.Effects, "root-1-0")
			if isTold := strings.Contains(told, " "+d.Name+" ("); isTold != begins {
				t.Errorf("%s may call %s: %v, and is told so: %v (%.80s)", root.Name, d.Name, begins, isTold, told)
			}
		}
	}
}

func submittedTo(fx []supervisor.Effect, id spec.ID) (spec.Task, bool) {
	i := slices.IndexFunc(fx, func(e supervisor.Effect) bool {
		tell, ok := e.(supervisor.Tell)
		_, submits := tell.Fact.(agent.Submitted)
		return ok && submits && tell.To == id
	})
	if i < 0 {
		return spec.Task{}, false
	}
	return fx[i].(supervisor.Tell).Fact.(agent.Submitted).Task, true
}
