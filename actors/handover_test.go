package actors_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool"
)

// worldTally counts what the world saw, over all owners of the logs.
type worldTally struct {
	mu     sync.Mutex
	paid   map[string]int
	asked  int
	client model.Client
}

func (y *worldTally) Complete(ctx context.Context, r model.Request, emit func(model.Delta)) (model.Reply, error) {
	y.mu.Lock()
	y.asked++
	y.mu.Unlock()
	pauseMoment(ctx)
	return y.client.Complete(ctx, r, emit)
}

func (y *worldTally) payTool(ctx context.Context, c tool.Call) (tool.Result, error) {
	y.mu.Lock()
	y.paid[c.Key]++
	y.mu.Unlock()
	pauseMoment(ctx)
	return tool.Result{Text: "paid"}, nil
}

// pauseMoment is how long the world takes, so that something is always under way.
func pauseMoment(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(3 * time.Millisecond):
	}
}

// TestHandOffLosesNothing: runs with side effects and children change their
// owner again and again in the middle of their work. Every owner lets what it
// began come to its end. No effect happens twice, no model call is made or
// charged twice, and nobody is asked.
//
//behaviour:shows F2
func TestHandOffLosesNothing(t *testing.T) {
	for _, linger := range []time.Duration{actors.IdleTimeoutDefault, soon} { // with soon, whoever waits has gone by then
		t.Run(linger.String(), inBubble(func(t *testing.T) { handOvers(t, linger) }))
	}
}

func handOvers(t *testing.T, linger time.Duration) {
	const runs, callsOfARun = 6, 3 + 2*2 // three turns of the boss, two of each helper
	sc, err := script.Parse([]byte(`
agents:
  boss:
    - calls: [{name: pay, args: {to: a}}, {name: delegate, args: {agent: helper, task: one}}, {name: delegate, args: {agent: helper, task: two}}]
    - calls: [{name: pay, args: {to: b}}]
    - text: "done"
  helper:
    - calls: [{name: pay, args: {to: c}}]
    - text: "did {{task}}"
`))
	if err != nil {
		t.Fatal(err)
	}
	y := &worldTally{paid: map[string]int{}, client: sc.Client("")}
	pay := echoTool{name: "pay", class: model.Effect, call: y.payTool}
	set, err := tool.NewSet(pay)
	if err != nil {
		t.Fatal(err)
	}
	post := memory.New(memory.Config{})
	results := map[string]event.Result{}
	owners := 0
	for lease := uint64(1); len(results) < runs; lease++ {
		owners++
		s := stageOf(t, actors.Config{Name: fmt.Sprintf("owner-%d", lease), Post: post, Lease: lease, IdleTimeout: linger,
			Model: func(string) (model.Client, string, error) { return y, "m", nil },
			Tools: func(spec.Task) (*tool.Set, error) { return set, nil }})
		for i := range runs {
			id := fmt.Sprintf("r%d", i)
			if err := s.node.Open(t.Context(), openedRun(id, pay, delegate)); err != nil {
				t.Fatal(err)
			}
			if err := s.node.Resume(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		s.upTo(25, runs-len(results), results)
		gone := make(chan struct{})
		s.node.HandOver("all", func(mailbox.Address, uint64) bool { return true }, func() { close(gone) })
		select {
		case <-gone:
		case <-time.After(deadline):
			t.Fatalf("owner %d could not let go; events: %s", lease, s.eventKinds())
		}
		s.node.Stop()
		for len(s.over) > 0 {
			r := <-s.over
			results[r.Run] = r
		}
	}
	for id, r := range results {
		if r.Reason != spec.Completed || r.Budget.Unknown != 0 || len(r.Agents) != 3 {
			t.Errorf("%s: %+v", id, r)
		}
	}
	for key, n := range y.paid {
		if n != 1 {
			t.Errorf("%s was paid %d times", key, n)
		}
	}
	if len(y.paid) != runs*4 || y.asked != runs*callsOfARun {
		t.Errorf("%d payments of %d, %d model calls of %d", len(y.paid), runs*4, y.asked, runs*callsOfARun)
	}
	if owners < 3 {
		t.Errorf("only %d owners: the runs were never handed over in the middle", owners)
	}
	t.Logf("%d owners, %d payments, %d model calls", owners, len(y.paid), y.asked)
}

// upTo waits for so many events, or for the end of all runs.
func (s *testNode) upTo(events, runs int, results map[string]event.Result) {
	s.t.Helper()
	late := time.After(deadline)
	for n := 0; n < events && runs > 0; {
		select {
		case <-s.seen:
			n++
		case r := <-s.over:
			if _, known := results[r.Run]; !known {
				runs--
			}
			results[r.Run] = r
		case <-late:
			s.t.Fatalf("nothing happens any more; events: %s", s.eventKinds())
		}
	}
}
