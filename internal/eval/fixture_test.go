package eval_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/eval"
	"github.com/troupe-run/troupe/internal/fixture"
	"github.com/troupe-run/troupe/internal/runfile"
)

// recordCase runs a case of the project and returns its run file.
func recordCase(ctx context.Context, t *testing.T, id string) runfile.File {
	t.Helper()
	cases, err := eval.LoadCases("../../test/evals")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(cases, func(c eval.Case) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("no case %s", id)
	}
	f, err := cases[i].Record(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFixturesOfAllCases: the fixture of the run of every case ends as the run did, and passes if it expects that.
//
//behaviour:shows J2
func TestFixturesOfAllCases(t *testing.T) {
	cases, err := eval.LoadCases("../../test/evals")
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		t.Run(cases[i].ID, func(t *testing.T) {
			t.Parallel()
			f, err := cases[i].Record(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			made, err := fixture.Make(t.Context(), f, fixture.Options{AsRecorded: true})
			if err != nil {
				t.Fatal(err)
			}
			if !made.EndsAsRecorded() || !made.Verdict.Pass {
				text, _ := made.Encode(false)
				t.Errorf("%q %q\n%s", made.Verdict.Unlike, made.Verdict.Differences, text)
			}
		})
	}
}

// replaced is a fix: a text of the fixture, and what takes its place.
type replaced struct{ old, new string }

// answersOf gives a fixture of a run in which no tool ran answers of its tools.
func answersOf(text string) replaced {
	return replaced{"\nmodel:\n  ids:", "\nmocked_tools:\n" + text + "model:\n  ids:"}
}

// fixes mend what a failed run failed of: the reply of the model, the answer of a tool, a limit, a hook, a
// rule, or what a person did.
var fixes = map[string][]replaced{
	"max_turns_of_one":                     {{"root_turns: 1\n", "root_turns: 5\n"}},
	"cost_budget":                          {{"nano_usd: 50000000\n", "nano_usd: 5000000000\n"}},
	"token_budget":                         {{"tokens: 5000\n", "tokens: 900000\n"}},
	"must_stop_on_max_tool_calls":          {{"tool_calls: 2\n", "tool_calls: 200\n"}, {"root/1-1", "root/1-1\n    - status: ok\n      answers_call: root/1-2"}},
	"timeout_hard":                         {{"status: hangs", "status: ok"}},
	"refused_by_the_model":                 {{"stop: refusal", "stop: end"}},
	"max_output_tokens":                    {{"stop: max_output", "stop: end"}},
	"malformed":                            {{"- stop: end", "- text: Here it is."}},
	"model_error":                          {{"- error:\n          class: authentication\n          message: the key is not valid", "- text: Something."}},
	"prompt_too_long":                      {{"- error:\n          class: prompt_too_long\n          message: the prompt is too long", "- text: I have read it."}},
	"vetoed_for_good":                      {{"text: It is broken.", "text: 'Evidence: the log.'"}},
	"claims_completion_without_evidence":   {{"root:\n", "root:\n      - calls: [{name: read_delivery_status}]\n"}, answersOf("  read_delivery_status: [{status: ok, result: delivered}]\n")},
	"shipping_lookup_repeated_failure":     {{"status: retryable_error", "status: ok"}},
	"nobody_to_ask":                        {{"status: error", "status: ok"}},
	"tool_error_ends_the_run":              {{"status: error", "status: ok"}},
	"stop_hook_prevented":                  {{"    decision: prevent\n", ""}},
	"policy_blocked":                       {{"    decision: prevent\n", ""}, answersOf("  delete_account: [{status: ok}]\n")},
	"guardrail_trips":                      {{"    decision: trip\n", ""}, answersOf("  publish: [{status: ok}]\n")},
	"forbidden_again_and_again_is_refused": {{"      deny:\n        - issue_refund\n        - update_policy\n", ""}, answersOf("  issue_refund: [{status: ok}, {status: ok}]\n  update_policy: [{status: ok}]\n")},
	"resume_never_repeats_an_effect":       {{"status: hangs", "status: ok"}, {"during:\n  - after: mock.called\n    of: root/1-0\n    nth: 1\n    crash: true\n", ""}},
	"chain_canceled":                       {{"status: hangs", "status: ok"}, {"during:\n  - after: mock.called\n    of: root-1-0/1-0\n    nth: 1\n    cancel: now\n", ""}},
	"canceled_at_the_boundary":             {{"during:\n  - after: mock.called\n    of: root/1-0\n    nth: 1\n    cancel: boundary\n", ""}},
	"aborted_streaming":                    {{"delay: 10m0s", "delay: 0s"}, {"during:\n  - after: mock.asked\n    of: root\n    nth: 1\n    cancel: now\n", ""}},
	"canceled_while_parked":                {{"after: agent.parked", "after: query.asked"}, {"cancel: boundary", "answer: {text: blue}"}},
	"parked_for_a_person":                  {{"\nexpected:\n", "\nduring: [{after: query.asked, answer: {text: blue}}]\nexpected:\n"}},
}

// inBlocks is a YAML document with each key and element on a line of its own, as the fixes have them.
func inBlocks(t *testing.T, doc []byte) string {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal(doc, &n); err != nil {
		t.Fatal(err)
	}
	var unfold func(*yaml.Node)
	unfold = func(n *yaml.Node) {
		n.Style &^= yaml.FlowStyle
		for _, one := range n.Content {
			unfold(one)
		}
	}
	unfold(&n)
	out, err := eval.EncodeCases(&n, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestAFixtureIsShort: a case has the agents and the tools that its replies have to do with, and short lists stand on one line.
func TestAFixtureIsShort(t *testing.T) {
	t.Parallel()
	const spare = `
case_id: spare
goal: Look.
agents: [{name: boss}, {name: helper}, {name: stranger}]
mocked_tools: {look: [{status: ok}], smell: [{status: ok}], taste: [{status: ok}]}
model:
  agents:
    boss:
      - calls: [{name: delegate, args: {agent: helper, task: Help}}]
      - text: Done.
    helper:
      - calls: [{name: look}]
      - text: I looked.
expected: {stop_reason: completed}
`
	cases, err := eval.ParseCases("spare.yaml", []byte(spare))
	if err != nil {
		t.Fatal(err)
	}
	f, err := cases[0].Record(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	made, err := fixture.Make(t.Context(), f, fixture.Options{})
	if err != nil || !made.EndsAsRecorded() || !made.Verdict.Pass || len(made.Loosened) > 0 {
		t.Fatalf("%v %+v %v", err, made.Verdict, made.Loosened)
	}
	raw, err := made.Encode(false)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, absent := range []string{"stranger", "smell", "taste"} {
		if strings.Contains(text, absent) {
			t.Errorf("%s has nothing to do with the replies:\n%s", absent, text)
		}
	}
	for _, want := range []string{"\n    watch: {of: 6, identical: 3, pattern: 4, stuck: 3, apart: 1}\n", "name: helper", "name: look"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q:\n%s", want, text)
		}
	}
}

// TestFixturesFailUntilTheirFix: the fixture of a failed run fails as the run failed, and passes after a fix.
//
//behaviour:shows J2
func TestFixturesFailUntilTheirFix(t *testing.T) {
	for id, fix := range fixes {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			made, err := fixture.Make(t.Context(), recordCase(t.Context(), t, id), fixture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !made.EndsAsRecorded() || made.Verdict.Pass || made.Case.Expected.StopReason != spec.Completed {
				t.Fatalf("before the fix: %+v", made.Verdict)
			}
			raw, err := made.Encode(false)
			if err != nil {
				t.Fatal(err)
			}
			text := inBlocks(t, raw)
			for _, r := range fix {
				if !strings.Contains(text, r.old) {
					t.Fatalf("nothing to mend: %q\n%s", r.old, text)
				}
				text = strings.ReplaceAll(text, r.old, r.new)
			}
			cases, err := eval.ParseCases("fixed.yaml", []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if v := cases[0].Run(t.Context()); !v.Pass {
				t.Errorf("after the fix: %q\n%s", v.Differences, text)
			}
		})
	}
	if len(fixes) < 20 {
		t.Errorf("%d kinds of failed runs", len(fixes))
	}
}

// TestABlessedFixturePasses: a fixture of the recorded end fails after a fix, until it is blessed.
func TestABlessedFixturePasses(t *testing.T) {
	t.Parallel()
	made, err := fixture.Make(t.Context(), recordCase(t.Context(), t, "max_turns_of_one"), fixture.Options{AsRecorded: true})
	if err != nil || !made.Verdict.Pass {
		t.Fatalf("%v %+v", err, made.Verdict)
	}
	text, err := made.Encode(true)
	if err != nil {
		t.Fatal(err)
	}
	fixed := strings.Replace(string(text), `"root_turns": 1`, `"root_turns": 5`, 1)
	if cases, err := eval.ParseCases("case.json", []byte(fixed)); err != nil || cases[0].Run(t.Context()).Pass {
		t.Fatalf("the fix changes nothing: %v\n%s", err, fixed)
	}
	if text, verdicts := blessed(t, "case.json", fixed); !verdicts[0].Pass || *verdicts[0].AsRecorded {
		t.Errorf("%+v\n%s", verdicts[0], text)
	}
}

// TestAFixtureHasNoSecrets: what is masked here is in no text of the case.
func TestAFixtureHasNoSecrets(t *testing.T) {
	t.Parallel()
	f := recordCase(t.Context(), t, "guardrail_trips")
	mask := func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	made, err := fixture.Make(t.Context(), f, fixture.Options{Mask: mask})
	if err != nil || !made.EndsAsRecorded() {
		t.Fatalf("%v %+v", err, made.Verdict)
	}
	for _, asJSON := range []bool{false, true} {
		text, err := made.Encode(asJSON)
		if err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "[redacted]") {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// longTail is a run that needs the last of its replies to fail.
const longTail = `
case_id: long_tail
goal: Go.
agents: [{name: boss, limits: {max_turns: 2}}, {name: helper}]
mocked_tools: {look: [{status: ok}]}
model:
  agents:
    boss:
      - calls: [{name: delegate, args: {agent: helper, task: Help}}]
      - {text: I refuse., stop: refusal}
    helper:
      - calls: [{name: look}]
      - text: I looked, and I say a lot about it.
expected: {stop_reason: refused}
`

// TestTheShortestFixture: replies without which the run ends in the same way are left out, and a run that needs
// all of its replies keeps them.
func TestTheShortestFixture(t *testing.T) {
	t.Parallel()
	cases, err := eval.ParseCases("tail.yaml", []byte(`
case_id: tail
goal: Go.
mocked_tools: {look: [{status: ok}]}
limits: {max_turns: 3}
tools: {look: {repeat: true}}
model: [{calls: [{name: look, args: {n: 1}}]}, {calls: [{name: look, args: {n: 2}}]}, {calls: [{name: look, args: {n: 3}}]}, {text: No more.}]
expected: {stop_reason: max_turns}
`))
	if err != nil {
		t.Fatal(err)
	}
	f, err := cases[0].Record(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	made, err := fixture.Make(t.Context(), f, fixture.Options{Shortest: true})
	if err != nil || !made.EndsAsRecorded() || made.Verdict.Pass || made.Kept != 3 || made.Replies != 4 { // the last one sums up
		t.Errorf("%v: %d of %d replies: %+v", err, made.Kept, made.Replies, made.Verdict)
	}
	if cases, err = eval.ParseCases("long.yaml", []byte(longTail)); err != nil {
		t.Fatal(err)
	}
	if f, err = cases[0].Record(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	made, err = fixture.Make(t.Context(), f, fixture.Options{Shortest: true})
	if err != nil || !made.EndsAsRecorded() || made.Kept != made.Replies {
		t.Errorf("%v: %d of %d replies: %+v", err, made.Kept, made.Replies, made.Verdict)
	}
}
