package node

import (
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// TestOldAndNewNodesSideBySide: a run gets the rules that every live node knows.
// One that was begun under newer ones is left alone by an old node that comes
// later, by name, and goes on when a node is there that knows them (P10, FM25).
func TestOldAndNewNodesSideBySide(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	model, gate, agents := heldFamily(t)
	node := func(name string, rules int) *Node {
		return startNode(t, t.TempDir(), func(c *Config) {
			c.Name, c.Roots, c.ResumeAll, c.LeaseTTL, c.Rules = name, []string{agents}, true, shard.TTLMin, rules
			c.Bus = e.ConnectOptions(bus.RoleNode)
		})
	}
	old, young := node("old", 1), node("young", 2)
	waitForSpread(t, old, young)
	waitUntil(t, "a new run gets rules 1, which are all that a node knows", func() bool { return young.newRunRules() == 1 })
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	waitForSpread(t, young)
	waitUntil(t, "a new run gets rules 2, which all nodes know", func() bool { return young.newRunRules() == 2 })
	c := connectClient(t, young)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	late := node("late", 1)
	young.cutNetwork() // the old one is alone with a run that it does not know
	c = connectClient(t, late)
	waitUntil(t, "the old node says what it leaves alone", func() bool {
		list, err := c.Nodes(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(n client.NodeInfo) bool { return n.Name == "late" && len(n.Avoids) > 0 })
	})
	openGate(t, gate)
	node("next", 2)
	if info := waitFinished(t, c, id, spec.Completed); info.Result.Budget.Overrun != 0 {
		t.Errorf("%+v", info.Result.Budget)
	}
}
