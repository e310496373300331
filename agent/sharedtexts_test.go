package agent_test

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Each run decodes its task out of its own log. The long texts that tasks have in common are one copy, also for an agent
// that begins later, and the task that was given is not changed.
func TestAgentsShareTheTextsOfTheirTasks(t *testing.T) {
	decoded := func() spec.Task {
		return spec.Task{Run: "r", ID: spec.Root, Goal: "work", System: strings.Repeat("be brief. ", 20), Tools: []model.ToolSpec{{Name: "read", Schema: strings.Repeat(" ", 100) + "{}"}}}
	}
	begin := func(task spec.Task) agent.State {
		s, _ := agent.Step(agent.State{}, agent.Input{Fact: agent.Submitted{Task: task}})
		return s
	}
	given := decoded()
	first := begin(given)
	runtime.GC()
	second := begin(decoded())
	a, b := first.Task, second.Task
	if unsafe.StringData(a.System) != unsafe.StringData(b.System) || unsafe.StringData(a.Tools[0].Schema) != unsafe.StringData(b.Tools[0].Schema) {
		t.Error("two agents hold two copies of one text")
	}
	if a.System != given.System || a.Tools[0] != given.Tools[0] {
		t.Errorf("a text changed: %+v", a)
	}
	if &a.Tools[0] == &given.Tools[0] {
		t.Error("the list of tools that was given is changed in place")
	}
	runtime.KeepAlive(first)
}
