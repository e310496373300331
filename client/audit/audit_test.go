package audit

import (
	"encoding/json"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
)

// auditOf makes the audit of events of one agent, a second apart.
func auditOf(t *testing.T, list ...event.Event) Audit {
	t.Helper()
	b := newBuilder("r")
	for i, e := range list {
		raw, err := json.Marshal(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		b.add(client.Event{Published: event.Published{Run: "r", Agent: "root", Kind: e.Kind, Turn: 1, TS: event.FormatStamp(int64(i) * 1000)}, Data: raw})
	}
	return b.finish()
}

// A cancel is in the audit, with who made it; other warnings are not.
func TestAuditNamesWhoCanceled(t *testing.T) {
	a := auditOf(t, event.Event{Kind: event.KindWarningRaised, Data: event.Warning{What: "given up"}},
		event.Event{Kind: event.KindWarningRaised, Data: event.Warning{What: event.WarningOfCancel, Why: event.CanceledByPerson, By: "ann", Now: true}},
		event.Event{Kind: event.KindWarningRaised, Data: event.Warning{What: event.WarningOfCancel, Why: "wrong task", By: "bob"}},
		event.Event{Kind: event.KindWarningRaised, Data: event.Warning{What: event.WarningOfCancel, Agent: "root-1-0", Why: event.CanceledByPerson, By: "ann"}})
	if len(a.Entries) != 3 || a.Entries[0].Kind != KindCancel || a.Entries[0].By != "ann" || a.Entries[0].Text != "canceled (now)" {
		t.Fatalf("%+v", a.Entries)
	}
	if got := a.Entries[1].Text; got != `canceled, because of "wrong task",` {
		t.Error(got)
	}
	if got := a.Entries[2].Text; got != "canceled root-1-0 and the agents below it" {
		t.Error(got)
	}
}

// A call that began before a crash has an unknown outcome, until it runs again or a late result comes; what a person
// says about it is a decision.
//
//behaviour:shows K7
func TestOutcomeOfALostCallIsUnknown(t *testing.T) {
	begun := []event.Event{
		{Kind: event.KindToolProposed, Data: event.ToolCall{Call: "1-0", Tool: "charge", Args: "{\"q\":\"\u202e5\"}"}},
		{Kind: event.KindToolApproved, Data: event.ToolDecided{Call: "1-0", Tool: "charge", Decision: spec.HookAllow, By: []string{permission.ByRule}, Rule: "charge", From: "troupe.yaml:3", Digest: "ab"}},
		{Kind: event.KindToolStarted, Data: event.ToolCall{Call: "1-0", Tool: "charge", Class: model.Effect, Attempt: 1}},
		{Kind: event.KindCheckpointResumeUnsafe, Data: event.ResumeUnsafe{Query: "q", Call: "1-0"}},
		{Kind: event.KindQueryAsked, Data: event.AgentParked{Query: "q", Call: "1-0", Reason: spec.ResumeUnsafe, DueMS: 9000}},
	}
	open := auditOf(t, begun...).Entries[0].Call
	if open.Outcome != Unknown || !open.Question.Open || open.Question.Expires == "" || open.Arguments == "{\"q\":\"\u202e5\"}" || open.Digest != "ab" {
		t.Errorf("%+v", open)
	}
	if d := open.Decisions[0]; d.Author != ByRule || !d.Advance || d.From != "troupe.yaml:3" {
		t.Errorf("%+v", d)
	}
	skipped := auditOf(t, append(begun, event.Event{Kind: event.KindQueryAnswered, Data: event.QueryAnswered{Query: "q", Decision: "skip", By: "Ann"}},
		event.Event{Kind: event.KindToolFinished, Data: event.ToolCall{Call: "1-0", Tool: "charge", Text: "unknown"}})...).Entries[0].Call
	if d := skipped.Decisions[len(skipped.Decisions)-1]; skipped.Outcome != Unknown || skipped.Question.Open || d.Author != ByPerson || d.By[0] != "Ann" {
		t.Errorf("%+v", skipped)
	}
	late := auditOf(t, append(begun, event.Event{Kind: event.KindToolFinished, Data: event.ToolCall{Call: "1-0", Tool: "charge", Text: "done"}})...).Entries[0].Call
	again := auditOf(t, append(begun, event.Event{Kind: event.KindQueryAnswered, Data: event.QueryAnswered{Query: "q", Decision: "approve", By: "Ann"}}, begun[2],
		event.Event{Kind: event.KindToolFinished, Data: event.ToolCall{Call: "1-0", Tool: "charge", Text: "done"}})...).Entries[0].Call
	if late.Outcome != Succeeded || again.Outcome != Succeeded || again.Lost != 1 || again.Attempts != 2 {
		t.Errorf("%+v %+v", late, again)
	}
	ended := auditOf(t, append(begun[:3:3], event.Event{Kind: event.KindRunFinished, Data: event.Result{}})...)
	if got := ended.Entries[0].Call.Outcome; got != Unknown {
		t.Errorf("the run has ended, and the call %s", got)
	}
}
