package term

import (
	"strings"
	"testing"
	"time"
)

// The summary of a tree counts the calls that the limit of tool calls counts: delegations, questions and calls that were
// denied, too, and none that the loop answers itself. The ends of the agents have the same number.
func TestATreeCountsCallsAsTheirLimitDoes(t *testing.T) {
	var tree Tree
	count := func(want string, docs ...string) {
		t.Helper()
		for _, doc := range docs {
			tree.AddEvent(parseEvent(t, doc))
		}
		if got := tree.Summary(Style{}, time.Time{}); !strings.Contains(got, "   "+want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	count("3 tool calls",
		`{"run":"r","agent":"root","kind":"agent.started","data":{"name":"boss"}}`,
		`{"run":"r","agent":"root","kind":"tool.validated","data":{"call":"1-0","tool":"delegate"}}`,
		`{"run":"r","agent":"root","kind":"tool.validated","data":{"call":"1-1","tool":"delegate"}}`,
		`{"run":"r","agent":"root","kind":"tool.finished","data":{"call":"1-2","tool":"unknown","error":true}}`,
		`{"run":"r","agent":"root","kind":"delegation.requested","data":{"call":"1-0","tool":"delegate","child":"root-1-0"}}`,
		`{"run":"r","agent":"root-1-0","kind":"tool.validated","data":{"call":"1-0","tool":"grep"}}`,
		`{"run":"r","agent":"root-1-0","kind":"tool.started","data":{"call":"1-0","tool":"grep"}}`,
		`{"run":"r","agent":"root-1-0","kind":"tool.finished","data":{"call":"1-0","tool":"grep"}}`)
	count("2 tool calls", // a guardrail has held back one call of the child
		`{"run":"r","agent":"root-1-0","kind":"agent.finished","data":{"stop_reason":"guardrail","tool_calls":0}}`)
	count("2 tool calls",
		`{"run":"r","agent":"root","kind":"agent.finished","data":{"stop_reason":"completed","tool_calls":2}}`,
		`{"run":"r","agent":"super","kind":"run.finished","data":{"type":"result","agents":[{"id":"root","tool_calls":2},{"id":"root-1-0","tool_calls":0}]}}`)
}

// The rows of a tree add up to its total: what the pool was charged for a call of unknown usage is in the row of its agent.
func TestRowsShowWhatWasChargedForCallsOfUnknownUsage(t *testing.T) {
	var tree Tree
	row := func(want string, docs ...string) {
		t.Helper()
		for _, doc := range docs {
			tree.AddEvent(parseEvent(t, doc))
		}
		if got := tree.Row(Style{}, "root", 80, time.Time{}); !strings.HasSuffix(got, " "+want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	row("1.5k",
		`{"run":"r","agent":"super","kind":"budget.reserved","data":{"id":"root","used":5000,"charged_unknown":5000}}`, // of a fork
		`{"run":"r","agent":"root","kind":"agent.started","data":{"name":"boss"}}`,
		`{"run":"r","agent":"root","kind":"model.finished","data":{"usage":{"input_tokens":200,"output_tokens":50},"usage_known":true}}`,
		`{"run":"r","agent":"super","kind":"budget.settled","data":{"id":"root","used":5250,"charged_unknown":5000}}`,
		`{"run":"r","agent":"root","kind":"error.raised","data":{"error":"interrupted"}}`,
		`{"run":"r","agent":"super","kind":"budget.settled","data":{"id":"root","used":6510,"charged_unknown":6260}}`)
	row("1.6k", // an agent that was given up has settled nothing
		`{"run":"r","agent":"super","kind":"run.finished","data":{"type":"result","agents":[{"id":"root","tokens":1600}]}}`)
}
