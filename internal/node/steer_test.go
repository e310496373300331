package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// An agent that has ended reads nothing any more: the client that steers it is told so.
func TestAttackSteeringOfAnAgentThatHasEnded(t *testing.T) {
	t.Parallel()
	_, gate, agents := heldFamily(t)
	teller := "---\nname: teller\ndescription: Answers.\n---\nAnswer.\n"
	boss := "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [teller, keeper]\n---\nDelegate.\n"
	for name, text := range map[string]string{"teller.md": teller, "boss.md": boss} {
		if err := os.WriteFile(filepath.Join(agents, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := writeScript(t, `
agents:
  boss:
    - calls:
        - {name: delegate, args: {agent: teller, task: "first"}}
        - {name: delegate, args: {agent: keeper, task: "second"}}
    - text: "both"
  teller:
    - text: "hello"
  keeper:
    - calls: [{name: wait}]
    - text: "waited"
`)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindAgentFinished, 1)
	err := c.Steer(testContext(t), client.SteerRequest{RunID: id, Agent: "root-1-0", Text: "more"})
	if refused := new(client.Error); !errors.As(err, &refused) || refused.Code != client.CodeConflict || !strings.Contains(refused.Text, "root-1-0 of "+id+" has ended") {
		t.Errorf("%v", err)
	}
	for _, agent := range []string{"", "root-1-1"} {
		if err := c.Steer(testContext(t), client.SteerRequest{RunID: id, Agent: agent, Text: "be quick"}); err != nil {
			t.Errorf("%q: %v", agent, err)
		}
	}
	openGate(t, gate)
	waitFinished(t, c, id, spec.Completed)
}
