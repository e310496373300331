package actors_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// claimWatcher counts the activations that have appended a claim and have not read their log.
type claimWatcher struct {
	mailbox.Post
	now, most, claims atomic.Int64
}

func (w *claimWatcher) Append(ctx context.Context, to mailbox.Address, data []byte, acked func(uint64, error)) {
	if kind, _ := activation.InspectEntry(data); kind == "resumed" {
		w.claims.Add(1)
		n := w.now.Add(1)
		for most := w.most.Load(); n > most && !w.most.CompareAndSwap(most, n); most = w.most.Load() {
		}
	}
	w.Post.Append(ctx, to, data, acked)
}

func (w *claimWatcher) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	if after == 0 {
		defer w.now.Add(-1)
	}
	return w.Post.Read(ctx, at, after, through, each) //nolint:wrapcheck // as the store
}

// waitingCrowd is a run whose root has teams of helpers that wait for their model.
type waitingCrowd struct {
	teams, helpers int
	asked          chan struct{} // a value for each call of a helper
}

func (w waitingCrowd) agents() int { return 1 + w.teams*(1+w.helpers) }

func (w waitingCrowd) complete(ctx context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	child, count := `{"agent":"lead","task":"go"}`, w.teams
	switch r.Caller.Name {
	case "helper":
		w.asked <- struct{}{}
		<-ctx.Done()
		return model.Reply{}, ctx.Err()
	case "lead":
		child, count = `{"agent":"helper","task":"go"}`, w.helpers
	}
	reply := sayReply("")
	for range count {
		reply.Message.Calls = append(reply.Message.Calls, model.ToolCall{Name: "delegate", Args: child})
	}
	return reply, nil
}

// run starts a node on the logs and waits until all helpers wait for their model. It returns what the node has allocated.
func (w waitingCrowd) run(t *testing.T, post mailbox.Post, lease uint64, begin func(*actors.Node) error) (allocated uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	node, err := actors.Start(context.Background(), actors.Config{Post: post, Lease: lease, ReplaysAtOnce: 8, OnEvent: func(event.Published) {},
		Model: func(string) (model.Client, string, error) { return clientFunc(w.complete), "m", nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Stop()
	if err := begin(node); err != nil {
		t.Fatal(err)
	}
	late := time.After(deadline)
	for n := range w.teams * w.helpers {
		select {
		case <-w.asked:
		case <-late:
			t.Fatalf("%d of %d helpers wait for their model", n, w.teams*w.helpers)
		}
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// takeOver has a node take over a run of many agents that wait for their models, and returns how many bytes it allocates
// for each.
func takeOver(t *testing.T, w waitingCrowd) float64 {
	t.Helper()
	w.asked = make(chan struct{}, w.agents())
	post := &claimWatcher{Post: memory.New(memory.Config{})}
	w.run(t, post, 1, func(n *actors.Node) error {
		o := openedRun("r", delegate)
		o.Definitions = append(o.Definitions, supervisor.Definition{Name: "lead", System: "You lead a part."})
		o.Limits = spec.RunLimits{Calls: 1 << 30, Children: 64, Agents: 10_000}
		o.Agent = spec.Limits{Children: 64}
		return n.Open(context.Background(), o)
	})
	post.claims.Store(0)
	allocated := w.run(t, post, 2, func(n *actors.Node) error { return n.Resume(context.Background(), "r") })
	if claims := post.claims.Load(); claims < int64(w.agents()) {
		t.Errorf("%d of %d agents were activated", claims, w.agents())
	}
	if most := post.most.Load(); most > 8 {
		t.Errorf("%d logs were replayed at once, want at most 8", most)
	}
	return float64(allocated) / float64(w.agents())
}

// A node that takes over a run of many agents replays a bounded number of their logs at once, and what it does for each
// agent does not grow with their number.
func TestTakeoverCostsTheSameForEachAgent(t *testing.T) {
	few, many := takeOver(t, waitingCrowd{teams: 5, helpers: 60}), takeOver(t, waitingCrowd{teams: 50, helpers: 60})
	t.Logf("KB allocated for an agent: %.0f among 306, %.0f among 3,051", few/1024, many/1024)
	if many > 1.5*few {
		t.Errorf("an agent among 3,051 costs %.1f times as much as among 306", many/few)
	}
}
