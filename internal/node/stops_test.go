package node

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// TestCancelReplyNamesTheStoppedAgents: it waits for the agents, and names
// the node of those that cannot be reached. Agents that count as stopped begin nothing.
//
//behaviour:shows B5
func TestCancelReplyNamesTheStoppedAgents(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	model, _, agents := placedAgents(t)
	one := joinAs(t, e, "one", func(c *Config) { c.Pools, c.Roots, c.LeaseTTL = []string{"default"}, []string{agents}, shard.TTLMin })
	two := joinAs(t, e, "two", func(c *Config) { c.Pools, c.LeaseTTL = []string{"gpu"}, shard.TTLMin })
	holdsAll(t, "default", one)
	holdsAll(t, "gpu", two)
	c := connectClient(t, one)
	begin := func() string {
		id := client.NewID()
		if _, err := c.RunOn(testContext(t), "one", client.RunRequest{RunID: id, Prompt: "dig", Model: model, Agents: agents, Agent: "boss"}); err != nil {
			t.Fatal(err)
		}
		awaitEvents(t, c, id, event.KindToolStarted, 1)
		return id
	}
	id := begin()
	reply, err := c.Cancel(testContext(t), client.CancelRequest{RunID: id, Now: true, WaitMS: client.CancelWaitMax.Milliseconds()})
	if err != nil || reply.Agents != 2 || reply.Stopped != 2 || len(reply.Pending) != 0 || reply.Text != "2 of 2 stopped" {
		t.Errorf("%v, %+v", err, reply)
	}
	info, err := c.Get(testContext(t), id)
	if err != nil || len(info.Result.Agents) != 2 {
		t.Fatalf("%v, %+v", err, info)
	}
	for _, a := range info.Result.Agents {
		if a.Phase != "done" {
			t.Errorf("%s counts as stopped, and is %s", a.ID, a.Phase)
		}
	}
	id = begin()
	two.cutNetwork()
	reply, err = c.Cancel(testContext(t), client.CancelRequest{RunID: id, Agent: "root-1-0", Now: true, WaitMS: 2 * shard.TTLMin.Milliseconds()})
	if err != nil || reply.Agents != 1 || reply.Stopped != 0 || len(reply.Pending) != 1 {
		t.Fatalf("%v, %+v", err, reply)
	}
	p := reply.Pending[0]
	if p.Node != "two" || p.Agents != 1 || !p.Unreachable || p.LeaseMS != 0 || !strings.Contains(reply.Text, "1 unreachable on two, whose lease has ended") {
		t.Errorf("%+v", reply)
	}
	reply, err = c.Cancel(testContext(t), client.CancelRequest{RunID: id, Now: true, WaitMS: -1})
	if err != nil || reply.Agents != 2 || len(reply.Pending) == 0 {
		t.Errorf("%v, %+v", err, reply)
	}
	three := joinAs(t, e, "three", func(c *Config) { c.Pools, c.LeaseTTL = []string{"gpu"}, shard.TTLMin })
	holdsAll(t, "gpu", three)
	waitFinished(t, c, id, spec.AbortedTools)
}
