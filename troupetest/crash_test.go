package troupetest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/troupetest"
)

const shopReplies = `
agents:
  clerk:
    - calls: [{name: stock, args: {name: bolt}}]
    - calls: [{name: delegate, args: {agent: buyer, task: "Are bolts cheap?"}}]
    - text: "Order none: {{last}}"
  buyer: [{text: "They are dear."}]
`

type article struct {
	Name string `json:"name"`
}

func shop() troupe.Config {
	return troupe.Config{
		Agents: []troupe.Agent{{Name: "clerk", Description: "Orders.", Delegates: []string{"buyer"}}, {Name: "buyer", Description: "Knows prices."}},
		Tools: []tool.Tool{tool.Func("stock", "How many are in stock.", model.Read, func(context.Context, article) (int, error) {
			return 12, nil
		})},
	}
}

// A run finishes with the same answer and the same calls, whichever of its entries is the last one of a killed node.
func TestARunSurvivesACrashAtEachOfItsEntries(t *testing.T) {
	check := func(t *testing.T, tr *troupetest.Trace, crashes int) {
		tr.AssertCompleted("Order none: They are dear.")
		tr.AssertCalls("stock", 1)
		tr.AssertCalls("delegate", 1)
		tr.AssertOrder(event.KindRunStarted, event.KindAgentFinished)
		if tr.Crashes != crashes || len(tr.Result.Agents) != 2 {
			t.Errorf("%d crashes and %d agents", tr.Crashes, len(tr.Result.Agents))
		}
	}
	fewest := 0 // an allowance that ends in time saves an entry, so not every run has as many
	for range 3 {
		undisturbed := troupetest.Start(t, shop(), shopReplies).Run(troupe.Task{Prompt: "Do we need bolts?"})
		check(t, undisturbed, 0)
		if fewest == 0 || undisturbed.Entries < fewest {
			fewest = undisturbed.Entries
		}
	}
	if fewest < 10 {
		t.Errorf("%d entries", fewest)
	}
	for entry := 1; entry <= fewest; entry++ {
		t.Run(fmt.Sprint(entry), func(t *testing.T) {
			t.Parallel()
			n := troupetest.Start(t, shop(), shopReplies)
			n.CrashAt(entry)
			check(t, n.Run(troupe.Task{Prompt: "Do we need bolts?"}), 1)
		})
	}
}

// A run survives several crashes, and the node serves the next run without one.
func TestARunSurvivesSeveralCrashes(t *testing.T) {
	n := troupetest.Start(t, shop(), shopReplies)
	n.CrashAt(3, 7, 12)
	tr := n.Run(troupe.Task{Prompt: "Do we need bolts?"})
	tr.AssertCompleted("They are dear.")
	if tr.Crashes != 3 {
		t.Errorf("%d crashes", tr.Crashes)
	}
	if next := n.Run(troupe.Task{Prompt: "And nuts?"}); next.Crashes != 0 || next.Err != nil || next.Result.Run == tr.Result.Run {
		t.Errorf("%d crashes, %v", next.Crashes, next.Err)
	}
}

// A tool with a side effect runs at most once, whichever entry is the last one; if its result was lost, a person is
// asked.
func TestASideEffectIsNotRepeatedAfterACrash(t *testing.T) {
	const replies = `agents: {clerk: [{calls: [{name: order}]}, {text: "It is ordered."}]}`
	task := troupe.Task{Prompt: "Order bolts", AllowedTools: []string{"order"}}
	start := func(t *testing.T) (*troupetest.Node, *atomic.Int64) {
		var orders atomic.Int64
		return troupetest.Start(t, troupe.Config{Agents: []troupe.Agent{{Name: "clerk", Description: "Orders."}},
			Tools: []tool.Tool{tool.Func("order", "Orders bolts.", model.Effect, func(context.Context, struct{}) (string, error) {
				orders.Add(1)
				return "ordered", nil
			})}}, replies), &orders
	}
	n, _ := start(t)
	undisturbed := n.Run(task)
	undisturbed.AssertCompleted("It is ordered.")
	var parked atomic.Int64
	t.Run("crash", func(t *testing.T) {
		for entry := 1; entry <= undisturbed.Entries; entry++ {
			t.Run(fmt.Sprint(entry), func(t *testing.T) {
				t.Parallel()
				n, orders := start(t)
				n.CrashAt(entry)
				tr := n.Run(task)
				if tr.Err == nil {
					tr.AssertCompleted("It is ordered.")
					tr.AssertCalls("order", 1)
				} else {
					parked.Add(1)
					tr.AssertParked("order")
				}
				if got := orders.Load(); got > 1 || got == 0 && tr.Err == nil {
					t.Errorf("%d orders, %v", got, tr.Err)
				}
			})
		}
	})
	if parked.Load() == 0 {
		t.Error("no crash lost the result of the order")
	}
}
