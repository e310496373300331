package eval_test

import (
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/eval"
	"github.com/troupe-run/troupe/internal/fixture"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// recordText runs a case that is written here and returns its run file.
func recordText(t *testing.T, text string) runfile.File {
	t.Helper()
	cases, err := eval.ParseCases("case.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := cases[0].Record(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestAShortFixtureFailsAsTheWholeOne: a case that has too few replies, so that its model says that the script ended, does not
// stand for one that fails of another reason.
func TestAShortFixtureFailsAsTheWholeOne(t *testing.T) {
	t.Parallel()
	f := recordText(t, `
case_id: wrong_answer
goal: What is six times seven?
agents: [{name: boss}, {name: helper}]
mocked_tools: {look: [{status: ok}]}
model:
  agents:
    boss:
      - calls: [{name: delegate, args: {agent: helper, task: Multiply}}]
      - text: The answer is 41.
    helper:
      - calls: [{name: look}]
      - text: It is 41.
expected: {stop_reason: completed}
`)
	for name, o := range map[string]fixture.Options{"answer": {Answer: "42"}, "end": {Expect: spec.NeedsHuman}, "passes": {}} {
		whole, err := fixture.Make(t.Context(), f, o)
		if err != nil || !whole.EndsAsRecorded() || whole.Verdict.Pass != (name == "passes") {
			t.Fatalf("%s: %v %+v", name, err, whole.Verdict)
		}
		o.Shortest = true
		made, err := fixture.Make(t.Context(), f, o)
		if err != nil || !made.EndsAsRecorded() || made.Kept != made.Replies || made.Verdict.StopReason != spec.Completed {
			t.Errorf("%s: %v: %d of %d replies: %+v", name, err, made.Kept, made.Replies, made.Verdict)
		}
		if got, want := made.Verdict.Differences, whole.Verdict.Differences; len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: it fails of %q, and the whole case of %q", name, got, want)
		}
	}
}

// TestTheHistoryOfAHandoffIsInTheCase: an agent that takes over recalls the conversation of the case itself.
func TestTheHistoryOfAHandoffIsInTheCase(t *testing.T) {
	t.Parallel()
	f := recordText(t, `
case_id: handed_off
goal: My order is broken.
agents: [{name: triage, handoffs: [billing]}, {name: billing}]
model:
  agents:
    triage: [{calls: [{name: handoff, args: {agent: billing, message: Refund it.}}]}]
    billing: [{text: Refunded.}, {text: Refunded.}]
expected: {stop_reason: completed}
`)
	made, err := fixture.Make(t.Context(), f, fixture.Options{})
	if err != nil || !made.EndsAsRecorded() || !made.Verdict.Pass || len(made.Left) > 0 {
		t.Errorf("%v %+v %q", err, made.Verdict, made.Left)
	}
	// The process may have ended before it closed the log.
	last := len(f.Entries) - 1
	for ; f.Entries[last].To.Agent() != mailbox.Super; last-- {
	}
	f.Entries = slices.Delete(slices.Clone(f.Entries), last, last+1)
	made, err = fixture.Make(t.Context(), f, fixture.Options{})
	if err != nil || !made.EndsAsRecorded() || !made.Verdict.Pass || len(made.Left) > 0 {
		t.Errorf("the log is not closed: %v %+v %q", err, made.Verdict, made.Left)
	}
}
