package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// startSharedServer starts a NATS server that several nodes use.
func startSharedServer(t *testing.T) *embedded.Server {
	t.Helper()
	e, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), Port: embedded.FreePort, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// startSharedNode starts a node on a shared server. Its leases are short where a test waits for
// the end of some, and long where none may end because the machine is slow.
func startSharedNode(t *testing.T, e *embedded.Server, name string, ttl time.Duration, roots ...string) *Node {
	t.Helper()
	return startNode(t, t.TempDir(), func(c *Config) {
		c.Name, c.Roots, c.ResumeAll, c.LeaseTTL, c.IdleTimeout = name, roots, true, ttl, 20*time.Millisecond
		c.Bus = e.ConnectOptions(bus.RoleNode)
	})
}

// cutNetwork takes a node off the network for good, as the death of its machine would.
func (n *Node) cutNetwork() {
	for _, nc := range []*nats.Conn{n.serviceConn, n.leaseConn, n.readerConn, n.logConn, n.eventConn} {
		nc.Close()
	}
}

// waitForSpread waits until every node holds a part of the shards.
func waitForSpread(t *testing.T, hosts ...*Node) {
	t.Helper()
	ctx := testContext(t)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		sum, all := 0, true
		for _, h := range hosts {
			n := len(h.logOwner.Inspect().Keeper.HeldShards())
			sum, all = sum+n, all && n > 0
		}
		if all && sum == hosts[0].logOwner.Inspect().Slots {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the nodes never shared the shards")
		}
	}
}

// TestRunsOfADeadNodeContinueOnOthers: three nodes share the actors of some runs; one of
// them is cut off in the middle of their work. Without intervention the other nodes take up
// its actors, and every run ends (F2).
//
//behaviour:shows F2
func TestRunsOfADeadNodeContinueOnOthers(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	model, gate, agents := heldFamily(t)
	hosts := []*Node{startSharedNode(t, e, "one", shard.TTLMin, agents), startSharedNode(t, e, "two", shard.TTLMin, agents), startSharedNode(t, e, "three", shard.TTLMin, agents)}
	waitForSpread(t, hosts...)
	c := connectClient(t, hosts[1])
	var ids []string
	idle := func(h *Node) bool { return workInProgress(h) == 0 }
	for len(ids) < 6 || len(ids) < 40 && slices.ContainsFunc(hosts, idle) { // random ids decide which node has which run
		id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
		awaitEvents(t, c, id, event.KindToolStarted, 2)
		ids = append(ids, id)
	}
	for _, h := range hosts {
		if idle(h) {
			t.Errorf("the work is not shared: %s has none of %d runs", h.cfg.Name, len(ids))
		}
	}
	hosts[0].cutNetwork()
	openGate(t, gate)
	for _, id := range ids {
		info := waitFinished(t, c, id, spec.Completed)
		if !strings.HasPrefix(info.Result.Text, "both: waited: open") {
			t.Errorf("result: %+v", info.Result)
		}
		if n := info.Result.Budget.Overrun; n != 0 {
			t.Errorf("overrun %d", n)
		}
	}
}

// workInProgress returns how much work a node has in progress.
func workInProgress(h *Node) int64 { return h.logOwner.Inspect().Busy }

// TestLeavingNodeReleasesItsShardsAtOnce: no other node waits for a lease to expire.
func TestLeavingNodeReleasesItsShardsAtOnce(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	one, two := startSharedNode(t, e, "one", shard.TTLDefault), startSharedNode(t, e, "two", shard.TTLDefault)
	waitForSpread(t, one, two)
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	waitForSpread(t, two)
	id := beginRun(t, connectClient(t, two), client.RunRequest{Prompt: "hello", Model: writeScript(t, "agents:\n  assistant:\n    - text: hi\n")})
	waitFinished(t, connectClient(t, two), id, spec.Completed)
}

// TestDrainedNodeHoldsNoShard: any node accepts the request, and the named node gives up
// its shards.
func TestDrainedNodeHoldsNoShard(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	one, two := startSharedNode(t, e, "one", shard.TTLDefault), startSharedNode(t, e, "two", shard.TTLDefault)
	waitForSpread(t, one, two)
	c := connectClient(t, two)
	if _, err := c.Drain(testContext(t), client.DrainRequest{Node: "nobody"}); err == nil {
		t.Error("a node that is not there was asked to leave")
	}
	named, err := c.Drain(testContext(t), client.DrainRequest{Node: "one"})
	if err != nil || len(named) != 1 || named[0].Name != "one" {
		t.Fatalf("%+v, %v", named, err)
	}
	waitForSpread(t, two)
	waitUntil(t, "the list says so", func() bool {
		list, err := c.Nodes(testContext(t))
		return err == nil && len(list) == 2 && list[0].Name == "one" && list[0].State == "leaving" && len(list[0].Shards) == 0
	})
	if _, err := c.Drain(testContext(t), client.DrainRequest{Node: "one", Undo: true}); err != nil {
		t.Fatal(err)
	}
	waitForSpread(t, one, two)
}

// TestRepliesCannotTargetLogSubjects: a request that names a log, a lease or an event
// as the place for its answer gets none, whatever the node's credentials allow.
func TestRepliesCannotTargetLogSubjects(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	one := startSharedNode(t, e, "one", shard.TTLDefault)
	waitForSpread(t, one)
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, to := range []string{"troupe.box.default.0.run.root", "troupe.evt.run.root.run.finished", "$KV.troupe_shards.default.0"} {
		sub, err := nc.SubscribeSync(to)
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.PublishRequest("troupe.cmd.list", to, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := connectClient(t, one).List(testContext(t)); err != nil { // the one before it has been served
			t.Fatal(err)
		}
		if n, _, err := sub.Pending(); err != nil || n != 0 {
			t.Errorf("%s: %d answers, %v", to, n, err)
		}
	}
}

// TestNodesMayStartAtOnce: each node finds that another has just created the buckets that
// it was about to create.
func TestNodesMayStartAtOnce(t *testing.T) {
	t.Parallel()
	for range 3 {
		e := startSharedServer(t)
		hosts := make([]*Node, 4)
		errs := make([]error, len(hosts))
		var wait sync.WaitGroup
		for i := range hosts {
			wait.Go(func() {
				hosts[i], errs[i] = Start(testContext(t), Config{Name: fmt.Sprintf("n%d", i), LeaseTTL: shard.TTLDefault, Lazy: true,
					Bus: e.ConnectOptions(bus.RoleNode)})
			})
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for _, h := range hosts {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestDrainWaitsForCallsInProgress: a node with side effects in progress is asked to stop.
// It waits for them; the other node continues, and neither runs them again nor asks the
// user.
func TestDrainWaitsForCallsInProgress(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	model, gate, agents := heldFamilyBy(t, "effect")
	one := startSharedNode(t, e, "one", shard.TTLDefault, agents)
	waitForSpread(t, one)
	c := connectClient(t, one)
	ids := []string{beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"}),
		beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})}
	for _, id := range ids {
		awaitEvents(t, c, id, event.KindToolStarted, 2)
	}
	two := startSharedNode(t, e, "two", shard.TTLDefault, agents)
	drained := make(chan error, 1)
	go func() { drained <- one.Drain(testContext(t)) }()
	waitUntil(t, "the other node sees it leave", func() bool {
		list, err := connectClient(t, two).Nodes(testContext(t))
		return err == nil && len(list) == 2 && list[0].State == "leaving"
	})
	if len(drained) > 0 {
		t.Error("it did not wait for the tools")
	}
	openGate(t, gate)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	c = connectClient(t, two)
	for _, id := range ids {
		info := waitFinished(t, c, id, spec.Completed)
		if info.Result.Budget.Unknown != 0 {
			t.Errorf("%d tokens were charged for calls that were never made", info.Result.Budget.Unknown)
		}
		_, raw := pagedEvents(t, c, id)
		started := 0
		for _, published := range raw {
			if strings.Contains(published, `"kind":"tool.started"`) {
				started++
			}
		}
		if started != 2 {
			t.Errorf("%d tools were started, 2 were asked for", started)
		}
	}
}
