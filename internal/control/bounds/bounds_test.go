package bounds

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// wideTree is the result of a root with 100 children, each of which has 100 of its own; the last one asks a person.
func wideTree() event.Result {
	r := event.Result{Type: "result", Run: "r", Agents: []event.AgentResult{{ID: spec.Root, Name: "lead"}}}
	add := func(parent spec.ID, i int) spec.ID {
		id := spec.ID(fmt.Sprintf("%s-%d-0", parent, i))
		r.Agents = append(r.Agents, event.AgentResult{ID: id, Name: "worker", Parent: &parent, Node: "n1", Turns: 3, Tokens: 12345, Reason: spec.Completed, Phase: "done"})
		return id
	}
	for i := range 100 {
		child := add(spec.Root, i)
		for k := range 100 {
			add(child, k)
		}
	}
	last := &r.Agents[len(r.Agents)-1]
	last.Phase, last.Query = "parked", &event.OpenQuery{Query: "1-0.0", Question: "May I?"}
	return r
}

func TestResultOfAWideTreeFitsAMessage(t *testing.T) {
	all := wideTree()
	r := FitAgents(all)
	raw, err := json.Marshal(r)
	if err != nil || len(raw) > agentsBytesMax+1000 || len(r.Agents) < 500 {
		t.Errorf("%d bytes for %d agents, %v", len(raw), len(r.Agents), err)
	}
	if len(r.Agents)+r.AgentsLeftOut != len(all.Agents) || len(all.Agents) != 10_101 {
		t.Errorf("%d listed, %d left out of %d", len(r.Agents), r.AgentsLeftOut, len(all.Agents))
	}
	if last := r.Agents[len(r.Agents)-1]; last.Query == nil {
		t.Errorf("the agent that asks a person is left out; the last is %+v", last)
	}
	listed := map[spec.ID]bool{}
	for _, a := range r.Agents {
		if listed[a.ID] = true; a.Parent != nil && !listed[*a.Parent] {
			t.Errorf("%s is listed without its parent", a.ID)
		}
	}
	if again := FitAgents(r); again.AgentsLeftOut != r.AgentsLeftOut {
		t.Errorf("%d left out at the second look, %d at the first", again.AgentsLeftOut, r.AgentsLeftOut)
	}
}

func TestResultOfASmallTreeListsAllAgents(t *testing.T) {
	all := wideTree()
	all.Agents = all.Agents[:100]
	if r := FitAgents(all); len(r.Agents) != 100 || r.AgentsLeftOut != 0 {
		t.Errorf("%d listed, %d left out", len(r.Agents), r.AgentsLeftOut)
	}
}
