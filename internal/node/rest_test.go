package node

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// actorCounts are how many actors of a node are live, and how many are at rest.
func actorCounts(h *Node) (live, resting int64) {
	var i client.NodeInfo
	h.logOwner.FillCounts(&i)
	return i.Live, i.Resting
}

// waitForPassivated waits until a node runs no actor and has a given number of passivated ones.
func waitForPassivated(t *testing.T, h *Node, want int64) {
	t.Helper()
	waitUntil(t, "all rest", func() bool {
		live, resting := actorCounts(h)
		return live == 0 && resting == want
	})
}

// Runs that wait for a person need nothing of their node, which says how many
// they are; the next node leaves them as they are, an answer wakes one of them
// there, and a cancel another one (P17, P19, E4, B6).
func TestWaitingRunsStayPassivated(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	const runs = 5
	state, agents, model := t.TempDir(), writeAskerAgent(t), writeScript(t, asker)
	opts := func(c *Config) { c.Roots, c.ResumeAll, c.IdleTimeout = []string{agents}, true, time.Millisecond }
	first := startNode(t, state, opts)
	c := connectClient(t, first)
	var ids []string
	for range runs {
		id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "asker"})
		if info, err := c.Wait(testContext(t), id); err != nil || info.State != client.RunParked {
			t.Fatalf("%+v %v", info, err)
		}
		ids = append(ids, id)
	}
	waitForPassivated(t, first, 2*runs)
	if list, err := c.Nodes(testContext(t)); err != nil || len(list) != 1 || list[0].Live != 0 || list[0].Resting != 2*runs {
		t.Errorf("%+v %v", list, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := startNode(t, state, opts)
	waitForPassivated(t, second, 2*runs)
	c = connectClient(t, second)
	wakeOne(t, c, ids[1])
	awaitEvents(t, c, ids[1], event.KindRunFinished, 1)
	if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: ids[3], Why: "enough"}); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, ids[3], event.KindRunFinished, 1)
	waitForPassivated(t, second, 2*runs-4)
}

// wakeOne answers the question of a run.
func wakeOne(t *testing.T, c *client.Client, run string) {
	t.Helper()
	open, err := c.Questions(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range open {
		if q.RunID == run {
			if err := c.Answer(testContext(t), client.AnswerRequest{RunID: run, Agent: q.Agent, Query: q.Query, Decision: "text", Text: "this"}); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s asks nothing: %+v", run, open)
}

// The node that takes over shards leaves passivated actors passivated, and wakes them by
// their next entry (P17, P19, F2).
func TestTakeoverLeavesPassivatedActors(t *testing.T) {
	t.Parallel()
	const runs = 6
	e := startSharedServer(t)
	agents, model := writeAskerAgent(t), writeScript(t, asker)
	one := startSharedNode(t, e, "one", shard.TTLMin, agents)
	two := startSharedNode(t, e, "two", shard.TTLMin, agents)
	waitForSpread(t, one, two)
	c := connectClient(t, two)
	var ids []string
	for range runs {
		ids = append(ids, beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "asker"}))
	}
	for _, id := range ids {
		if info, err := c.Wait(testContext(t), id); err != nil || info.State != client.RunParked {
			t.Fatalf("%+v %v", info, err)
		}
	}
	waitUntil(t, "all rest somewhere", func() bool {
		_, a := actorCounts(one)
		_, b := actorCounts(two)
		return a+b == 2*runs
	})
	one.cutNetwork()
	waitForPassivated(t, two, 2*runs)
	wakeOne(t, c, ids[0])
	awaitEvents(t, c, ids[0], event.KindRunFinished, 1)
	waitUntil(t, "two tells of all that rest there but those of the run that is over", func() bool {
		list, err := c.Nodes(testContext(t))
		if err != nil || len(list) == 0 {
			t.Fatalf("%+v %v", list, err)
		}
		return slices.ContainsFunc(list, func(n client.NodeInfo) bool { return n.Name == "two" && n.Resting == 2*runs-2 })
	})
}

// A node died after the log of a run was closed and before the index recorded that: the
// next node records from the log that the run is over (P17).
func TestNextNodeRecordsAFinishedRunInTheIndex(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state, agents, model := t.TempDir(), writeAskerAgent(t), writeScript(t, asker)
	opts := func(c *Config) { c.Roots, c.ResumeAll, c.IdleTimeout = []string{agents}, true, time.Millisecond }
	first := startNode(t, state, opts)
	c := connectClient(t, first)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "asker"})
	if info, err := c.Wait(testContext(t), id); err != nil || info.State != client.RunParked {
		t.Fatalf("%+v %v", info, err)
	}
	wakeOne(t, c, id)
	awaitEvents(t, c, id, event.KindRunFinished, 1)
	waitForPassivated(t, first, 0) // all logs are closed
	waitUntil(t, "the index is told", func() bool {
		list, err := first.runs.List(testContext(t))
		return err == nil && len(list) == 1 && list[0].State == client.RunFinished
	})
	if err := first.runs.Change(testContext(t), id, func(i *client.RunInfo) { i.State, i.Result = client.RunLive, nil }); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := startNode(t, state, opts)
	waitUntil(t, "the index knows the end", func() bool {
		list, err := second.runs.List(testContext(t))
		return err == nil && len(list) == 1 && list[0].State == client.RunFinished && list[0].Result != nil
	})
}
