package actors_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Names of throttles come from other nodes, or from whoever can write what they share: a node does
// not grow with them.
func TestThrottlesReportedByOtherNodesAreBounded(t *testing.T) {
	node, err := actors.Start(t.Context(), actors.Config{Name: "test", Post: memory.New(memory.Config{}), Lease: 1,
		Model: func(string) (model.Client, string, error) { return nil, "", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return tool.NewSet() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Stop)
	for i := range 5000 {
		node.ApplyNotice(fmt.Sprint("key-", i), throttle.Notice{PauseMS: 60_000, Why: throttle.Limited, Rates: throttle.Rates{Requests: 10}})
	}
	shown := make(chan map[string]throttle.Status, 1)
	node.Throttles(func(all map[string]throttle.Status) { shown <- all })
	select {
	case all := <-shown:
		if len(all) == 0 || len(all) > 1024 {
			t.Errorf("%d gates are kept", len(all))
		}
	case <-time.After(deadline):
		t.Fatal("no gates are shown")
	}
}

// crowdedModel is a model that answers when it is let go.
type crowdedModel struct {
	calls atomic.Int64
	free  chan struct{}
}

func (c *crowdedModel) Complete(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Reply, error) {
	c.calls.Add(1)
	select {
	case <-c.free:
	case <-ctx.Done():
	}
	return model.Reply{Message: model.Message{Role: model.Assistant, Text: "done"}, UsageKnown: true}, nil
}

// awaitThrottle waits until so many calls are in flight at the throttles of the node, and so many
// wait there.
func (s *testNode) awaitThrottle(flying, waiting int) {
	s.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(deadline); ; <-tick.C {
		shown := make(chan throttle.Status, 1)
		s.node.Throttles(func(all map[string]throttle.Status) {
			var sum throttle.Status
			for _, g := range all {
				sum.Flying, sum.Waiting = sum.Flying+g.Flying, sum.Waiting+g.Waiting
			}
			shown <- sum
		})
		g := <-shown
		if g.Flying == flying && g.Waiting == waiting {
			return
		}
		if time.Now().After(late) {
			s.t.Fatalf("%+v, not %d and %d; events: %s", g, flying, waiting, s.eventKinds())
		}
	}
}

// A bug in the throttle keeper costs nobody who waits there more than another attempt:
// their calls were never made.
//
//behaviour:shows G6
func TestCrashOfTheThrottleKeeperReleasesItsQueue(t *testing.T) {
	client := &crowdedModel{free: make(chan struct{})}
	s := stageOf(t, actors.Config{Name: "test", Post: memory.New(memory.Config{}), Lease: 1,
		ThrottleLimits: throttle.Limits{InitialWindow: 1, QueueMax: 3_600_000},
		Model:          func(string) (model.Client, string, error) { return client, "m", nil },
		Tools:          func(spec.Task) (*tool.Set, error) { return tool.NewSet() }})
	for i, run := range []string{"r1", "r2"} {
		o := openedRun(run)
		o.LoopOptions.PatienceMS = spec.PatienceMS
		if err := s.node.Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		s.awaitThrottle(1, i)
	}
	s.node.Throttles(func(map[string]throttle.Status) { panic("a bug") })
	close(client.free)
	for range 2 {
		if r := s.awaitResult(); r.Reason != spec.Completed || r.Budget.Unknown != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// A run that is canceled while its call waits at the throttle ends, sends nothing,
// and keeps no place in the queue.
func TestACanceledRunLeavesTheQueueOfTheGate(t *testing.T) {
	client := &crowdedModel{free: make(chan struct{})}
	s := stageOf(t, actors.Config{Name: "test", Post: memory.New(memory.Config{}), Lease: 1,
		ThrottleLimits: throttle.Limits{InitialWindow: 1, QueueMax: 3_600_000},
		Model:          func(string) (model.Client, string, error) { return client, "m", nil },
		Tools:          func(spec.Task) (*tool.Set, error) { return tool.NewSet() }})
	waits := func(flying, waiting int) { t.Helper(); s.awaitThrottle(flying, waiting) }
	for _, run := range []string{"r1", "r2"} {
		if err := s.node.Open(t.Context(), openedRun(run)); err != nil {
			t.Fatal(err)
		}
		waits(1, map[string]int{"r2": 1}[run])
	}
	stop := agent.Canceled{Why: "enough", Now: true}
	if err := s.node.Command(t.Context(), mailbox.At("r2", mailbox.Super), "c1", stop.Kind(), stop); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Run != "r2" || r.Cancel == nil {
		t.Errorf("%+v", r)
	}
	waits(1, 0)
	close(client.free)
	if r := s.awaitResult(); r.Run != "r1" || client.calls.Load() != 1 {
		t.Errorf("%d calls, %+v", client.calls.Load(), r)
	}
}

// TestNewThrottleAppliesRatesFromFirstRequest: a gate that has just been made
// knows nothing else yet, and is not forgotten with its rates.
func TestNewThrottleAppliesRatesFromFirstRequest(t *testing.T) {
	client := &crowdedModel{free: make(chan struct{})}
	s := stageOf(t, actors.Config{Name: "test", Post: memory.New(memory.Config{}), Lease: 1,
		ThrottleLimits: throttle.Limits{QueueMax: 3_600_000}, Rates: func(string) throttle.Rates { return throttle.Rates{Requests: 1} },
		Model: func(string) (model.Client, string, error) { return client, "m", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return tool.NewSet() }})
	for i, run := range []string{"r1", "r2"} {
		if err := s.node.Open(t.Context(), openedRun(run)); err != nil {
			t.Fatal(err)
		}
		s.awaitThrottle(1, i)
	}
	stop := agent.Canceled{Why: "enough", Now: true}
	if err := s.node.Command(t.Context(), mailbox.At("r2", mailbox.Super), "c1", stop.Kind(), stop); err != nil {
		t.Fatal(err)
	}
	s.awaitResult()
	close(client.free)
	s.awaitResult()
	if n := client.calls.Load(); n != 1 {
		t.Errorf("%d calls in a minute that has room for one", n)
	}
}
