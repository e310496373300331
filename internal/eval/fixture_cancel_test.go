package eval_test

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/eval"
	"github.com/troupe-run/troupe/internal/fixture"
	"github.com/troupe-run/troupe/model/script"
)

// canceledTree is a run that is canceled while two of its agents wait for their models.
const canceledTree = `
case_id: canceled_tree
goal: Go.
agents: [{name: boss}, {name: ann}, {name: ben}]
mocked_tools: {look: [{status: ok}, {status: ok}, {status: ok}, {status: ok}]}
model:
  agents:
    boss:
      - calls: [{name: delegate, args: {agent: ann, task: Look}}, {name: delegate, args: {agent: ben, task: Look}}]
      - text: Both have looked.
    ann:
      - calls: [{name: look}]
      - {calls: [{name: look}], delay: 300ms}
      - text: I looked.
    ben:
      - calls: [{name: look}]
      - {calls: [{name: look}], delay: 300ms}
      - text: I looked, too.
during: [{after: mock.asked, of: root-1-0, nth: 2, and: [{after: mock.asked, of: root-1-1, nth: 2}], cancel: boundary}]
expected: {stop_reason: aborted_tools}
`

// TestACanceledTreeIsStable: the cancel of a case comes when all agents are where it found them, whichever of them is late.
func TestACanceledTreeIsStable(t *testing.T) {
	t.Parallel()
	f := recordText(t, canceledTree)
	for _, late := range []string{"", "root-1-0", "root-1-1"} {
		made, err := fixture.Make(t.Context(), f, fixture.Options{AsRecorded: true})
		if err != nil || !made.EndsAsRecorded() || !made.Verdict.Pass || len(made.Loosened) > 0 {
			t.Fatalf("%v %+v %v", err, made.Verdict, made.Loosened)
		}
		for i, a := range made.Case.MockedTools["look"] {
			if strings.HasPrefix(a.Answers, late+"/") {
				made.Case.MockedTools["look"][i].Delay = script.Duration(time.Second)
			}
		}
		text, err := made.Encode(false)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := eval.ParseCases("late.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		if v := cases[0].Run(t.Context()); !v.Pass {
			t.Errorf("%s is late: %q\n%s", late, v.Differences, text)
		}
	}
}

// TestACancelThatDoesNotComeIsNamed: a case says which of the events did not happen that its cancel waits for.
func TestACancelThatDoesNotComeIsNamed(t *testing.T) {
	t.Parallel()
	cases, err := eval.ParseCases("never.yaml", []byte(`
case_id: never
goal: Go.
model: [{text: Done.}]
during: [{after: agent.started, of: root, and: [{after: tool.started, of: look, nth: 2}], cancel: now}]
expected: {stop_reason: completed}
`))
	if err != nil {
		t.Fatal(err)
	}
	if v := cases[0].Run(t.Context()); len(v.Differences) != 1 || v.Differences[0] != "during: there was no tool.started look number 2" {
		t.Errorf("%q", v.Differences)
	}
	_, err = eval.ParseCases("steer.yaml", []byte(`
case_id: steer
goal: Go.
model: [{text: Done.}]
during: [{after: model.started, and: [{after: tool.started}], steer: Faster}]
expected: {stop_reason: completed}
`))
	if err == nil || !strings.Contains(err.Error(), "which only a cancel may have") {
		t.Errorf("%v", err)
	}
}
