package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// joinAs is join for a node of some pools and a machine, with long leases.
func joinAs(t *testing.T, e *embedded.Server, name string, change func(*Config)) *Node {
	t.Helper()
	return startNode(t, t.TempDir(), func(c *Config) {
		c.Name, c.Machine, c.ResumeAll, c.LeaseTTL = name, name, true, shard.TTLDefault
		c.Bus = e.ConnectOptions(bus.RoleNode)
		change(c)
	})
}

// holdsAll waits until nodes hold all shards of a pool.
func holdsAll(t *testing.T, pool string, hosts ...*Node) {
	t.Helper()
	waitUntil(t, "all shards of "+pool+" are held", func() bool {
		n := 0
		for _, i := range hosts[0].logOwner.ClusterView().Nodes() {
			for _, h := range hosts {
				if i.ID == h.logOwner.Inspect().Keeper.ID() {
					n += len(i.Pools[pool])
				}
			}
		}
		return n == cluster.SizeOf(pool).Shards
	})
}

// placedAgents are a boss, and a miner in pool gpu whose tool waits for a gate.
func placedAgents(t *testing.T) (model, gate, agents string) {
	t.Helper()
	gate, agents = newGate(t), t.TempDir()
	for name, text := range map[string]string{
		"boss.md": "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [miner]\n---\nDelegate.\n",
		"miner.md": fmt.Sprintf(`---
name: miner
description: Mines.
x-troupe:
  placement: {pool: gpu}
  tools:
    - name: mine
      description: Waits for the gate.
      command: true < %q; echo gold
      effect: idempotent
---
Mine.
`, gate),
	} {
		if err := os.WriteFile(filepath.Join(agents, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return writeScript(t, `
agents:
  boss:
    - calls:
        - {name: delegate, args: {agent: miner, task: "dig"}}
    - text: "boss: {{last}}"
  miner:
    - calls: [{name: mine}]
    - text: "found {{last}}"
`), gate, agents
}

// nodeOf is the node on which an agent of a run was last alive.
func nodeOf(info client.RunInfo, id spec.ID) (node, pool string) {
	for _, a := range info.Result.Agents {
		if a.ID == id {
			return a.Node, a.Pool
		}
	}
	return "", ""
}

// TestAChildLivesInThePoolThatItsDefinitionNames: the parent is on a node of one pool, the
// child on a node of another; when that one dies, the next node of its pool continues, and
// no node of another pool (F2).
//
//behaviour:shows F2
func TestAChildLivesInThePoolThatItsDefinitionNames(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	model, gate, agents := placedAgents(t)
	one := joinAs(t, e, "one", func(c *Config) { c.Pools, c.Roots, c.LeaseTTL = []string{"default"}, []string{agents}, shard.TTLMin })
	c := connectClient(t, one)
	_, err := c.RunOn(testContext(t), "one", client.RunRequest{RunID: "refused", Prompt: "dig", Model: model, Agents: agents, Agent: "boss"})
	var refused *client.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Text, "pool gpu") {
		t.Fatalf("a run whose agent nobody could ever run: %v", err)
	}
	two := joinAs(t, e, "two", func(c *Config) { c.Pools, c.LeaseTTL = []string{"gpu"}, shard.TTLMin })
	holdsAll(t, "default", one)
	holdsAll(t, "gpu", two)
	id := client.NewID()
	if _, err := c.RunOn(testContext(t), "one", client.RunRequest{RunID: id, Prompt: "dig", Model: model, Agents: agents, Agent: "boss"}); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, id, event.KindToolStarted, 1)
	if err := c.Steer(testContext(t), client.SteerRequest{RunID: id, Request: "s1", Agent: "root-1-0", Text: "deeper"}); err != nil {
		t.Error(err)
	}
	two.cutNetwork()
	three := joinAs(t, e, "three", func(c *Config) { c.Pools, c.LeaseTTL = []string{"gpu"}, shard.TTLMin })
	holdsAll(t, "gpu", three)
	openGate(t, gate)
	info := waitFinished(t, c, id, spec.Completed)
	if !strings.HasPrefix(info.Result.Text, "boss: found gold") {
		t.Errorf("%q", info.Result.Text)
	}
	if node, pool := nodeOf(info, spec.Root); node != "one" || pool != "" {
		t.Errorf("the parent lived on %s, in pool %q", node, pool)
	}
	if node, pool := nodeOf(info, "root-1-0"); node != "three" || pool != "gpu" {
		t.Errorf("the child lived on %s, in pool %q", node, pool)
	}
	said, err := c.Transcript(testContext(t), id, "root-1-0")
	if err != nil || !strings.Contains(string(said), "deeper") {
		t.Errorf("transcript of the child: %s, %v", said, err)
	}
	if _, err := c.Delete(testContext(t), id); err != nil {
		t.Error(err)
	}
	if left, err := one.post.Addresses(context.Background(), id); err != nil || len(left) == 0 {
		t.Errorf("the graves of a deleted run: %v, %v", left, err)
	}
}

// TestARunWithADirectoryStopsWhenItsMachineDoesNotComeBack: no other node has the
// directory, so no other node continues the run, and the run ends and says why (P20).
//
//behaviour:shows F2
func TestARunWithADirectoryStopsWhenItsMachineDoesNotComeBack(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	model, _, agents := heldFamilyBy(t, "idempotent")
	soon := func(c *Config) { c.PoolPatience, c.LeaseTTL = 3*shard.TTLMin, shard.TTLMin }
	one := joinAs(t, e, "one", soon)
	two := joinAs(t, e, "two", func(c *Config) { soon(c); c.Roots = []string{agents} })
	holdsAll(t, "default", one, two)
	holdsAll(t, names.MachinePool("two"), two)
	c, id := connectClient(t, one), client.NewID()
	request := client.RunRequest{RunID: id, Prompt: "wait", Model: model, Agents: agents, Dir: agents, Agent: "boss"}
	if _, err := c.RunOn(testContext(t), "two", request); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	two.cutNetwork()
	info := waitFinished(t, c, id, spec.ResumeUnsafe)
	if !strings.Contains(info.Result.Detail, names.MachinePool("two")) {
		t.Errorf("%q", info.Result.Detail)
	}
	for _, a := range info.Result.Agents {
		if a.Pool != names.MachinePool("two") || a.Phase != "done" {
			t.Errorf("%+v", a)
		}
	}
}

// TestDrainOfAPoolsLastNodeWarns: such a node would keep its shards.
func TestDrainOfAPoolsLastNodeWarns(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	one := joinAs(t, e, "one", func(*Config) {})
	joinAs(t, e, "two", func(c *Config) { c.Pools = []string{"default", "gpu"} })
	c := connectClient(t, one)
	waitUntil(t, "both are known", func() bool {
		list, err := c.Nodes(testContext(t))
		return err == nil && len(list) == 2
	})
	named, err := c.Drain(testContext(t), client.DrainRequest{Node: "two"})
	if err != nil || len(named) != 1 || !strings.Contains(named[0].Warning, "pool gpu") {
		t.Errorf("%+v, %v", named, err)
	}
	isTwo := func(state string) func() bool {
		return func() bool {
			list, err := c.Nodes(testContext(t))
			return err == nil && len(list) == 2 && list[1].State == state
		}
	}
	waitUntil(t, "node two leaves", isTwo("leaving"))
	if _, err := c.Drain(testContext(t), client.DrainRequest{Node: "two", Undo: true}); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it stays", isTwo("live"))
	if named, err = c.Drain(testContext(t), client.DrainRequest{Node: "one"}); err != nil || len(named) != 1 || named[0].Warning != "" {
		t.Errorf("%+v, %v", named, err)
	}
}
