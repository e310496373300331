package node

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/mailbox"
)

// watchSweeps receives the counts of all sweeps of a node.
func watchSweeps(t *testing.T, h *Node) <-chan event.RunReconciled {
	t.Helper()
	nc, err := h.embedded.Connect(bus.RoleObserver)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	sweeps := make(chan event.RunReconciled, 1000)
	if _, err := nc.Subscribe("troupe.evt._cluster.*.run.reconciled", func(m *nats.Msg) {
		var e struct{ Data event.RunReconciled }
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Error(err)
		}
		sweeps <- e.Data
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return sweeps
}

// awaitSweep waits for a sweep with these counts.
func awaitSweep(t *testing.T, sweeps <-chan event.RunReconciled, want event.RunReconciled) {
	t.Helper()
	var last event.RunReconciled
	late := testContext(t).Done()
	for {
		select {
		case last = <-sweeps:
			if last == want {
				return
			}
		case <-late:
			t.Fatalf("no sweep with %+v; the last one: %+v", want, last)
		}
	}
}

// A sweep finds the runs that no node owns: one that another process left behind, one whose actors the node
// lost, and one that waits for a person, which needs nobody. Events count them.
//
//behaviour:shows K10
func TestSweepsResumeRunsThatNobodyOwns(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	model, gate, agents := heldFamily(t)
	asking := writeAskerAgent(t)
	first := startNode(t, state, func(c *Config) { c.Roots = []string{agents, asking} })
	c := connectClient(t, first)
	parked := beginRun(t, c, client.RunRequest{Model: writeScript(t, asker), Agents: asking, Agent: "asker"})
	if info, err := c.Wait(testContext(t), parked); err != nil || info.State != client.RunParked {
		t.Fatalf("%+v %v", info, err)
	}
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := startNode(t, state, func(c *Config) {
		c.Roots, c.IdleTimeout, c.ReconcileEvery = []string{agents, asking}, time.Millisecond, 200*time.Millisecond
	})
	sweeps := watchSweeps(t, second)
	if err := second.logOwner.StartReconciling(testContext(t)); err != nil {
		t.Fatal(err)
	}
	var started event.RunReconciled
	select {
	case started = <-sweeps:
	case <-testContext(t).Done():
		t.Fatal("no sweep at the start")
	}
	if started.Why != "started" || started.Resumed+started.Waiting != 2 || started.Resumed == 0 {
		t.Errorf("the first sweep: %+v", started)
	}
	c = connectClient(t, second)
	awaitEvents(t, c, id, event.KindAgentResumed, 3)
	awaitSweep(t, sweeps, event.RunReconciled{Why: "interval", Waiting: 1, Owned: 1})

	// A hand-off keeps the actors from starting again until a sweep has found that no node owns the run.
	drained := make(chan struct{})
	var lifted atomic.Bool
	second.actorNode.HandOver("all", func(at mailbox.Address, _ uint64) bool { return at.Run() == id && !lifted.Load() }, func() { close(drained) })
	openGate(t, gate)
	select {
	case <-drained:
	case <-testContext(t).Done():
		t.Fatal("the actors of the run do not end in order")
	}
	awaitSweep(t, sweeps, event.RunReconciled{Why: "interval", Waiting: 1, Resumed: 1})
	lifted.Store(true) // a later sweep, when the node no longer waits for the actors that did not start
	waitFinished(t, connectClient(t, second), id, spec.Completed)
	awaitSweep(t, sweeps, event.RunReconciled{Why: "interval", Waiting: 1})
}
