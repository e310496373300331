package agent_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// A State is large: the copies that a step makes of it are on the stack.
func TestAStepPutsNoStateOnTheHeap(t *testing.T) {
	s := stepAgent(agent.State{}, agent.Submitted{Task: spec.Task{Run: "r", ID: spec.Root, Goal: "g"}})
	var fact agent.Fact = agent.Checkpoint{}
	if n := testing.AllocsPerRun(100, func() { s, _ = agent.Step(s, agent.Input{At: 1, Fact: fact}) }); n > 0 {
		t.Errorf("a step that changes nothing makes %g allocations", n)
	}
}
