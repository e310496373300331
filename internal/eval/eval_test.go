package eval

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// TestEvals runs every case of the project.
//
//behaviour:shows J1 J3
func TestEvals(t *testing.T) {
	cases, err := LoadCases("../../test/evals")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 40 {
		t.Errorf("%d cases", len(cases))
	}
	r := Run(t.Context(), cases, 2*ParallelDefault)
	for _, v := range r.Verdicts {
		for _, d := range v.Differences {
			t.Errorf("%s: %s: %s", v.File, v.Case, d)
		}
	}
	t.Logf("%d cases in %d ms, %.0f %% replayed", r.Cases.Of, r.TookMS, r.Replay.Percent())
}

// base is a case with something to expect of every kind. %s is its expectation.
const base = `
case_id: base
goal: Look.
agents: [{name: boss, system: Be brief.}, {name: helper}]
mocked_tools:
  look: [{status: ok, result: a lamp}, {status: ok, result: a chair}]
tools: {ask_human: {}}
model:
  agents:
    boss:
      - calls: [{name: look, args: {n: 1}}]
      - calls: [{name: look, args: {n: 2}}, {name: delegate, args: {agent: helper, task: Help}}]
      - {text: "There is {{result.0}}.", calls: [{name: ask_human, args: {question: "Is that all?"}}]}
    helper: [{text: I help.}]
expected: {stop_reason: needs_human, PLACE}
`

// controls are expectations that base meets, and the message about each when it is changed
// so that base does not.
var controls = map[string]struct{ right, wrong, told string }{
	"stop_reason":           {"", "", "stop_reason is needs_human (Is that all?), expected completed"},
	"max_tool_calls":        {"max_tool_calls: 2", "max_tool_calls: 1", "tools ran 2 times, expected at most 1"},
	"forbidden_tools":       {"forbidden_tools: [wipe]", "forbidden_tools: [look]", "the forbidden tool look ran 2 times"},
	"requires_trace_events": {"requires_trace_events: [proposal, tool.started]", "requires_trace_events: [model.retry]", "the trace has no model.retry"},
	"forbids_trace_events":  {"forbids_trace_events: [model.retry]", "forbids_trace_events: [escalation]", "the trace has escalation"},
	"partial":               {"partial: true", "partial: false", "partial is true, expected false"},
	"parked":                {"parked: true", "parked: false", "parked is true, expected false"},
	"transitions":           {"transitions: [next_turn, next_turn]", "transitions: [next_turn]", "the transitions are [next_turn next_turn], expected [next_turn]"},
	"turns":                 {"turns: 4", "turns: 3", "there were 4 turns, expected 3"},
	"max_turns":             {"max_turns: 4", "max_turns: 3", "there were 4 turns, expected at most 3"},
	"max_tokens":            {"max_tokens: 5000", "max_tokens: 10", "tokens were used, expected at most 10"},
	"tool_runs":             {"tool_runs: {look: 2}", "tool_runs: {look: 3}", "look ran 2 times, expected 3"},
	"first_tools":           {"first_tools: [look]", "first_tools: [delegate]", "the first tools are [look], expected [delegate]"},
	"calls":                 {"calls: {root: [look, look, delegate, ask_human]}", "calls: {root: [look]}", "the calls of root are [look look delegate ask_human], expected [look]"},
	"answer_contains":       {`answer_contains: [""]`, "answer_contains: [a lamp]", `the answer lacks "a lamp"`},
	"answer_lacks":          {"answer_lacks: [a lamp]", `answer_lacks: [""]`, `the answer contains ""`},
	"detail_contains":       {`detail_contains: "that all"`, "detail_contains: nothing", `the detail lacks "nothing": Is that all?`},
	"question_contains":     {"question_contains: Is that", "question_contains: Is this", `the question lacks "Is this"`},
	"model_was_told":        {"model_was_told: [a lamp, a chair]", "model_was_told: [a table]", `no model was told "a table"`},
	"model_was_never_told":  {"model_was_never_told: [a table]", "model_was_never_told: [a chair]", `a model was told "a chair"`},
	"children":              {"children: [{name: helper, stop_reason: completed}]", "children: []", "the children are [{helper completed}], expected []"},
}

// runText runs base with an expectation.
func runText(t *testing.T, text string) Verdict {
	t.Helper()
	cases, err := ParseCases("base.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cases[0].Run(t.Context())
}

// TestWrongExpectationsFail: a case with a wrong expectation fails, for each kind of
// expectation, and only because of it.
//
//behaviour:shows J1
func TestWrongExpectationsFail(t *testing.T) {
	t.Parallel()
	for _, key := range keysOf()["Expected"] {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			c, ok := controls[key]
			if !ok {
				t.Fatalf("nothing shows that a wrong %s fails", key)
			}
			right := strings.Replace(base, "PLACE", c.right, 1)
			wrong := strings.Replace(base, "PLACE", c.wrong, 1)
			if key == "stop_reason" {
				wrong = strings.Replace(base, "needs_human, PLACE", "completed", 1)
			}
			if v := runText(t, right); !v.Pass {
				t.Errorf("what holds is told as a difference: %q", v.Differences)
			}
			v := runText(t, wrong)
			if v.Pass || len(v.Differences) != 1 || !strings.Contains(v.Differences[0], c.told) {
				t.Errorf("the differences are %q, not %q", v.Differences, c.told)
			}
		})
	}
}

// TestUnexpectedOutcomeFailsACase: a case also fails because of an outcome that no expectation
// names.
func TestUnexpectedOutcomeFailsACase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, told string }{
		"a tool runs more often than it has answers": {
			strings.NewReplacer("PLACE", "", ", {status: ok, result: a chair}", "").Replace(base), "look ran 2 times; the case has fewer answers"},
		"something from outside did not come to pass": {
			strings.Replace(base, "PLACE", "", 1) + "during: [{after: model.retry, nth: 2, cancel: now}]", "there was no model.retry  number 2"},
		"a run that does not end": {
			"case_id: x\ngoal: y\nwithin: 2s\nmodel: [{text: late, delay: 60s}]\nexpected: {stop_reason: completed}", "the run did not end within 2s"},
		"a script of a route that is not there": {
			"case_id: x\ngoal: y\nloop_options: {fallbacks: [{name: script/none}]}\nmodel: [{error: {class: authentication, message: no key}}]\nexpected: {stop_reason: completed}",
			"stop_reason is model_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := runText(t, c.text)
			if v.Pass || !strings.Contains(strings.Join(v.Differences, "\n"), c.told) {
				t.Errorf("the differences are %q, not %q", v.Differences, c.told)
			}
		})
	}
}

// TestReplayIsCompared: a log that does not bear out what the run said is a
// difference, be it the result, an event or an entry that cannot be read.
//
//behaviour:shows J1
func TestReplayIsCompared(t *testing.T) {
	t.Parallel()
	cases, err := ParseCases("x.yaml", []byte("case_id: x\ngoal: y\nmodel: [{text: Four.}]\nexpected: {stop_reason: completed}"))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := cases[0].runToEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, err := tr.readLog()
	if err != nil {
		t.Fatal(err)
	}
	if err := compareReport(replayLogs(log), tr.reported, tr.published); err != nil {
		t.Fatalf("an honest log differs: %v", err)
	}
	other := *tr.reported
	other.Text = "Five."
	if compareReport(replayLogs(log), &other, nil) == nil {
		t.Error("another result is not seen")
	}
	told := slices.Clone(tr.published)
	i := slices.IndexFunc(told, func(e event.Published) bool { return e.Kind == event.KindMessageAssistant })
	told[i].Data = event.Said{Text: "Five.", Bytes: 5}
	if compareReport(replayLogs(log), tr.reported, told) == nil {
		t.Error("an event that was told otherwise is not seen")
	}
	told = append(slices.Clone(tr.published), event.Published{ID: "eval.root#99.0", Seq: 99, Kind: event.KindTurnStarted})
	if compareReport(replayLogs(log), tr.reported, told) == nil {
		t.Error("an event that is in no log is not seen")
	}
	if compareReport(replayLogs(log[:len(log)/2]), tr.reported, tr.published) == nil {
		t.Error("a log without its end is not seen")
	}
	log[len(log)/2].Data = []byte("rot")
	if compareReport(replayLogs(log), tr.reported, tr.published) == nil {
		t.Error("an entry that cannot be read is not seen")
	}
}

// TestLogsOfACaseAreVerified: logs that break a rule, or do not show the reported end, are a difference of the case.
func TestLogsOfACaseAreVerified(t *testing.T) {
	t.Parallel()
	cases, err := ParseCases("x.yaml", []byte("case_id: x\ngoal: y\nmodel: [{text: Four.}]\nexpected: {stop_reason: completed}"))
	if err != nil {
		t.Fatal(err)
	}
	c := cases[0]
	tr, err := c.runToEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := tr.collectRecord()
	if err != nil || r.verification != nil {
		t.Fatal(err, r.verification)
	}
	log, err := tr.readLog()
	if err != nil {
		t.Fatal(err)
	}
	if verifyLogs(slices.Delete(slices.Clone(log), 2, 3), tr.claimEnd()) == nil {
		t.Error("a log that lacks an entry is not seen")
	}
	tr.reported.Reason = spec.Vetoed
	if err := verifyLogs(log, tr.claimEnd()); err == nil || !strings.Contains(err.Error(), "as-claimed") {
		t.Errorf("another end than the reported one: %v", err)
	}
	r.verification = errors.New("planted")
	if list := c.Expected.listDifferences(r); len(list) != 1 || list[0] != "the logs break a rule: planted" {
		t.Error(list)
	}
}

// TestRatesOfAReport: the rates are those of their definitions.
func TestRatesOfAReport(t *testing.T) {
	t.Parallel()
	r := buildReport([]Verdict{
		{Pass: true, StopReason: spec.Completed, Expected: spec.Completed, Proposals: 4, Invalid: 1, Repeated: 2, Tokens: 10, LatencyMS: 5, Replayed: true},
		{StopReason: spec.NeedsHuman, Expected: spec.Completed, Proposals: 4, LatencyMS: 1},
		{Pass: true, StopReason: spec.EvidenceMissing, Expected: spec.EvidenceMissing, LatencyMS: 9, Replayed: true},
	}, 0)
	for name, c := range map[string]struct{ got, want Rate }{
		"cases": {r.Cases, Rate{2, 3}}, "completion": {r.Completion, Rate{1, 2}}, "stop reason": {r.StopReason, Rate{2, 3}},
		"invalid": {r.Invalid, Rate{1, 8}}, "repeated": {r.Repeated, Rate{2, 8}}, "escalation": {r.Escalation, Rate{2, 3}}, "replay": {r.Replay, Rate{2, 3}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, not %v", name, c.got, c.want)
		}
	}
	if r.Pass || r.P50MS != 5 || r.MaxMS != 9 || r.Tokens != 10 {
		t.Errorf("%+v", r)
	}
	v := Verdict{}
	note := func(kind, call, tool, args, text string, failed bool) event.Published {
		return event.Published{Agent: "root", Kind: kind, Data: event.ToolCall{Call: call, Tool: tool, Args: args, Text: text, Error: failed}}
	}
	v.countProposals(caseRecord{events: []event.Published{
		note(event.KindToolProposed, "1-0", "read", `{"a":1,"b":2}`, "", false), note(event.KindToolValidated, "1-0", "read", "", "", false),
		note(event.KindToolFinished, "1-0", "read", "", "down", true),
		note(event.KindToolProposed, "2-0", "read", `{"b": 2, "a": 1}`, "", false), note(event.KindToolValidated, "2-0", "read", "", "", false),
		note(event.KindToolProposed, "3-0", "wipe", `{}`, "", false), note(event.KindToolFinished, "3-0", "wipe", "", "forbidden: no", true),
		note(event.KindToolProposed, "4-0", "read", `{"a":3}`, "", false), note(event.KindToolFinished, "4-0", "read", "", "not run: the limit", true),
	}, result: event.Result{}})
	if v.Proposals != 4 || v.Repeated != 1 || v.Invalid != 1 {
		t.Errorf("of the proposals %d are repeated and %d invalid: %+v", v.Repeated, v.Invalid, v)
	}
}

// TestBadFiles: the error about a file has a position and a remedy.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	const good = "case_id: x\ngoal: y\nexpected: {stop_reason: completed}\n"
	for _, c := range []struct{ name, text, told, remedy string }{
		{"nothing", "", "x.yaml: the file is empty", ""},
		{"no YAML", "a: [", "x.yaml:1:", ""},
		{"two documents", good + "---\n" + good, "x.yaml: more than one document", ""},
		{"a scalar", "completed", "x.yaml:1: cannot unmarshal", ""},
		{"an unknown key", "case_id: x\ngoal: y\nexpcted: {}", `x.yaml:3: unknown key "expcted"`, "did you mean expected?"},
		{"an unknown key within", "case_id: x\ngoal: y\nexpected:\n  stop_raeson: completed", `x.yaml:4: unknown key "stop_raeson"`, "did you mean stop_reason?"},
		{"no id", "goal: y\nexpected: {stop_reason: completed}", "x.yaml:1: a case without a case_id", ""},
		{"no goal", "case_id: x\nexpected: {stop_reason: completed}", "case x has no goal", ""},
		{"no stop reason", "case_id: x\ngoal: y", "expected has no stop_reason", ""},
		{"an unknown stop reason", strings.Replace(good, "completed", "complted", 1), `unknown stop_reason "complted"; did you mean completed?`, ""},
		{"an unknown transition", strings.Replace(good, "completed", "completed, transitions: [next]", 1), `unknown transition "next"`, ""},
		{"an unknown event", strings.Replace(good, "completed", "completed, requires_trace_events: [tool.startd]", 1), "did you mean tool.started?", ""},
		{"an unknown status", good + "mocked_tools: {look: [{status: fine}]}", `answer 0 of look: status "fine"`, ""},
		{"a bad schema", good + "tools:\n  look:\n    schema: {type: 7}", "x.yaml:6: case x: schema of look", ""},
		{"a bad class", good + "tools: {look: {class: nice}}", `class of look is "nice"`, ""},
		{"a bad script", good + "model:\n  - txt: hello", `x.yaml:5: case x: model: unknown key "txt"`, ""},
		{"a model that is not there", good + "agents: [{name: a, model: script/b}]", `uses the model "script/b", which is not in models`, ""},
		{"an agent without a name", good + "agents: [{system: a}]", "agent 0 has no name", ""},
		{"an unknown loop option", good + "loop_options:\n  watch: {identicl: 3}", `x.yaml:5: case x: loop_options: unknown key "identicl"`, ""},
		{"a loop option out of bounds", good + "loop_options: {watch: {of: 1000}}", "watch.of is 1000", ""},
		{"a loop option of a wrong type", good + "loop_options:\n  ask_people: perhaps", "loop_options: cannot unmarshal string", ""},
		{"a policy that cannot be applied", good + "policy: {rules: [{name: a, on: never, why: b}]}", `on is "never"`, ""},
		{"a hook without a point", good + "hooks: [{name: a}]", "hook a: there is no point", ""},
		{"nothing done during", good + "during: [{after: tool.started}]", "there must be one of cancel, steer, answer, crash", ""},
		{"a cancel of an unknown kind", good + "during: [{after: tool.started, cancel: soon}]", "cancel is boundary or now", ""},
		{"an unknown event during", good + "during: [{after: tool.begun, cancel: now}]", `during: after: unknown event "tool.begun"`, ""},
		{"a duration without a unit", good + "within: 5", "is not a duration", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseCases("x.yaml", []byte(c.text))
			var bad *BadFile
			if !errors.As(err, &bad) || !errors.Is(err, ErrCase) || !strings.Contains(err.Error(), c.told) {
				t.Fatalf("%v, not %q", err, c.told)
			}
			if bad.Remedy == "" || !strings.Contains(bad.Remedy, c.remedy) {
				t.Errorf("the remedy is %q, not %q", bad.Remedy, c.remedy)
			}
		})
	}
}

// TestPlacesOfCases: files and directories are read, each case once.
func TestPlacesOfCases(t *testing.T) {
	t.Parallel()
	const one = "case_id: ID\ngoal: y\nexpected: {stop_reason: completed}\n"
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	write("README.md", "not a case")
	write("a.yaml", strings.ReplaceAll(one, "ID", "a"))
	write("b.json", `[{"case_id":"b","goal":"y","expected":{"stop_reason":"completed"}},{"case_id":"c","goal":"y","expected":{"stop_reason":"completed"}}]`)
	cases, err := LoadCases(dir)
	if err != nil || len(cases) != 3 || cases[2].ID != "c" {
		t.Fatalf("%v %v", cases, err)
	}
	twice := write("d.yml", strings.ReplaceAll(one, "ID", "a"))
	for path, told := range map[string]string{dir: "case a is in", filepath.Join(dir, "none"): "no such file", t.TempDir(): "no files of cases"} {
		if _, err := LoadCases(path); !errors.Is(err, ErrCase) || !strings.Contains(err.Error(), told) {
			t.Errorf("%v, not %q", err, told)
		}
	}
	if _, err := LoadCases(twice); err != nil {
		t.Error(err)
	}
}

// TestCanceled: a caller that cancels gets an answer.
func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cases, err := ParseCases("x.yaml", []byte("case_id: x\ngoal: y\nexpected: {stop_reason: completed}"))
	if err != nil {
		t.Fatal(err)
	}
	if r := Run(ctx, cases, 1); r.Pass {
		t.Errorf("%+v", r)
	}
}

// FuzzParse: whatever a file holds, it is cases or a BadFile.
func FuzzParse(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte(`{"case_id":"x","goal":"y","tools":{"a.b":{"schema":{"$ref":"#"}}},"expected":{"stop_reason":"completed"}}`))
	f.Add([]byte("- &a {case_id: x, goal: y, expected: {stop_reason: completed}}\n- <<: *a\n  case_id: z\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cases, err := ParseCases("x.yaml", data)
		if bad := (*BadFile)(nil); err != nil && !errors.As(err, &bad) {
			t.Errorf("%v", err)
		}
		for _, c := range cases {
			if c.ID == "" || c.script == nil {
				t.Errorf("%+v", c)
			}
		}
	})
}
