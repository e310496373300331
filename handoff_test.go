package troupe_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/spec"
)

// An agent of a program hands off its conversation; the next task of the conversation goes to the agent that has it, unless
// the task names another one.
//
//behaviour:shows K9
func TestAProgramsAgentsHandOff(t *testing.T) {
	ctx := testContext(t)
	team := namedAgents("triage", "billing")
	team[0].Handoffs = []string{"billing"}
	n := startScripted(t, `
agents:
  triage:
    - {text: "Billing takes over.", calls: [{name: handoff, args: {agent: billing, message: "Refund order 7."}}]}
    - {text: "triage"}
    - {text: "triage"}
    - {text: "triage"}
  billing:
    - {text: "unheard"}
    - {text: "refunded"}
    - {text: "billing has it"}
`, troupe.Config{Agents: team})
	run := func(agent, text string) troupe.Result {
		t.Helper()
		r, err := n.Run(ctx, troupe.Task{Prompt: text, Agent: agent, Conversation: "c"})
		if err != nil || r.Reason != spec.Completed {
			t.Fatalf("%s: %v %s %s", text, err, r.Reason, r.Detail)
		}
		return r
	}
	first := run("", "My order 7 is broken.")
	if first.Text != "refunded" || first.HandedTo == nil || first.HandedTo.Name != "billing" || len(first.Agents) != 2 {
		t.Errorf("%+v", first)
	}
	if next := run("", "Thanks."); next.Text != "billing has it" || next.Agents[0].Name != "billing" {
		t.Errorf("the next message: %q of %s", next.Text, next.Agents[0].Name)
	}
	if other := run("triage", "Another matter."); other.Text != "triage" {
		t.Errorf("a message to an agent that is named: %q", other.Text)
	}
	team[0].Handoffs = []string{"biling"}
	_, err := troupe.Start(ctx, troupe.Config{Agents: team})
	if err == nil || !strings.Contains(err.Error(), `did you mean "billing"?`) {
		t.Errorf("a misspelled agent: %v", err)
	}
}
