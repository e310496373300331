package report

import (
	"encoding/json"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// A call that was denied is skipped, and no failed call, too. What was charged for a model call that its process did not survive
// is in the report, although no step has it.
func TestSkippedCallsAndUnknownChargesAreCountedOnce(t *testing.T) {
	t.Parallel()
	b := newBuilder("r")
	for _, e := range []struct {
		agent, kind string
		data        any
	}{
		{"root", event.KindToolStarted, event.ToolCall{Call: "1-0", Tool: "grep", Attempt: 1}},
		{"root", event.KindToolFinished, event.ToolCall{Call: "1-0", Tool: "grep", Error: true, Text: "no such file"}},
		{"root", event.KindToolDenied, event.ToolDecided{Call: "1-1", Tool: "pay"}},
		{"root", event.KindToolFinished, event.ToolCall{Call: "1-1", Tool: "pay", Error: true, Text: "denied"}},
		{"super", event.KindBudgetSettled, event.BudgetChanged{Used: 1300, Unknown: 1200, UsedUSD: 0.05}},
	} {
		raw, err := json.Marshal(e.data)
		if err != nil {
			t.Fatal(err)
		}
		in := client.Event{Data: raw}
		in.Agent, in.Kind, in.Turn = e.agent, e.kind, 1
		b.add(in)
	}
	if r := b.finish(); r.Calls != 1 || r.Failed != 1 || r.Skipped != 1 || r.ChargedUnknown != 1200 || r.ChargedUSD != 0.05 {
		t.Errorf("%+v", r)
	}
}
