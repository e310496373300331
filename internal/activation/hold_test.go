package activation_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// TestAgent_HoldsSettlements: a settlement may wait for company while the agent works, but not that of
// an attempt under an allowance whose reply begins a side effect: the supervisor has not heard of that
// attempt, and must, in case the log loses its tail (P13, P21).
func TestAgent_HoldsSettlements(t *testing.T) {
	a, n := activation.Agent{Addr: root}, uint64(0)
	step := func(f agent.Fact, from mailbox.Address) []activation.OutboxMessage {
		t.Helper()
		n++
		out := a.Step(activation.Fact{N: n, Activation: "a", From: from, Kind: f.Kind(), Body: decodeBody(t, f)})
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		return out.Messages
	}
	reply := func(tools ...string) []activation.OutboxMessage {
		t.Helper()
		var calls []model.ToolCall
		for _, name := range tools {
			calls = append(calls, model.ToolCall{Name: name, Args: "{}"})
		}
		return step(agent.Replied{Reservation: a.State.Reservation, Reply: model.Reply{UsageKnown: true, Usage: model.Usage{Input: 10, Output: 5},
			Message: model.Message{Role: model.Assistant, Calls: calls}}}, "")
	}
	schema := `{"type":"object"}`
	step(agent.Resumed{Activation: "a", Node: "n1"}, "")
	step(agent.Submitted{Task: spec.Task{Run: "r", ID: spec.Root, Goal: "do it", Limits: spec.Limits{Output: 100},
		Tools: []model.ToolSpec{{Name: "look", Schema: schema, Class: model.Read}, {Name: "pay", Schema: schema, Class: model.Effect}}}}, super)
	room := budget.Amount{Tokens: 1 << 20, Nano: budget.Unlimited, Calls: 100}
	step(agent.Granted{Reservation: 1, Output: 100, Calls: 9, Allowance: &budget.Allowance{Room: room}}, super)

	want := func(what string, messages []activation.OutboxMessage, hold bool) {
		t.Helper()
		for _, m := range messages {
			if m.Kind == (agent.Settle{}).Kind() {
				if m.Hold != hold {
					t.Errorf("the settlement of %s is held: %v, want %v", what, m.Hold, hold)
				}
				return
			}
		}
		t.Errorf("%s has no settlement: %v", what, messages)
	}
	want("the granted attempt", reply("look"), true)
	step(agent.Returned{Call: "1-0", Attempt: 1, Text: "seen"}, "")
	want("an attempt under the allowance", reply("look"), true)
	step(agent.Returned{Call: "2-0", Attempt: 1, Text: "seen"}, "")
	reply("pay") // verifies the log first
	step(agent.LogVerified{Activation: "a"}, super)
	step(agent.Started{Call: "3-0", Attempt: 1, Activation: "a"}, "")
	step(agent.Returned{Call: "3-0", Attempt: 1, Text: "paid"}, "")
	want("an attempt under the allowance, before a side effect", reply("pay"), false)
	step(agent.Started{Call: "4-0", Attempt: 1, Activation: "a"}, "")
	step(agent.Returned{Call: "4-0", Attempt: 1, Text: "paid"}, "")
	want("an attempt under the allowance whose side effect follows a read", reply("look", "pay"), false)
}
