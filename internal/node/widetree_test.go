package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// The agents of a wide tree do not fit one message. Its end is told nevertheless, and all of its events can be read.
func TestRunOfAWideTreeHasAResultAndAllEvents(t *testing.T) {
	t.Parallel()
	const children = 38
	delegations := func(agent string) string {
		return strings.TrimSuffix(strings.Repeat("{name: delegate, args: {agent: "+agent+", task: go}}, ", children), ", ")
	}
	script := fmt.Sprintf("agents:\n  lead: [{calls: [%s]}, {text: done}]\n  captain: [{calls: [%s]}, {text: done}]\n  worker: [{text: done}]\n", delegations("captain"), delegations("worker"))
	var files []string
	for _, name := range []string{"lead", "captain", "worker"} {
		files = append(files, name, "---\nname: "+name+"\ndescription: works\n---\nWork.\n")
	}
	agents := agentFiles(t, files...)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	a := runRequest(t, c, client.RunRequest{Agents: agents, Agent: "lead", Model: writeScript(t, script), MaxAgents: 2000, MaxChildren: children, MaxToolCalls: 100_000, MaxTokens: 50_000_000})
	r := waitFinished(t, c, a.RunID, spec.Completed).Result
	const all = 1 + children + children*children
	if len(r.Agents)+r.AgentsLeftOut != all || r.AgentsLeftOut == 0 {
		t.Errorf("%d agents listed, %d left out of %d", len(r.Agents), r.AgentsLeftOut, all)
	}
	finished, left := 0, 0
	err := c.Events(testContext(t), a.RunID, nil, false, func(e client.Event, _ []byte) error {
		switch e.Kind {
		case event.KindAgentFinished:
			finished++
		case event.KindRunFinished:
			left = client.DataOf[event.Result](e).AgentsLeftOut
		}
		return nil
	})
	if err != nil || finished != all || left != r.AgentsLeftOut {
		t.Errorf("%d agents have finished, %d are left out, %v", finished, left, err)
	}
	described, err := c.Describe(testContext(t), a.RunID)
	if err != nil || described.Description.AgentsLeftOut == 0 {
		t.Errorf("%+v, %v", described.Description, err)
	}
}
