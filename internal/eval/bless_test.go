package eval_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/eval"
)

// blessed writes a file of cases, blesses it, and returns its new text and the verdicts of its cases.
func blessed(t *testing.T, name, text string) (string, []eval.Verdict) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := eval.Bless(t.Context(), 0, path); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if rest, err := os.ReadDir(filepath.Dir(path)); err != nil || len(rest) != 1 {
		t.Errorf("%v %v", rest, err)
	}
	cases, err := eval.LoadCases(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out), eval.Run(t.Context(), cases, 1).Verdicts
}

const wrongCases = `# Two cases.
- case_id: wrong
  goal: Look. # twice
  mocked_tools: {look: [{status: ok, result: a lamp}, {status: ok, result: a chair}]}
  expected:
    stop_reason: max_turns # it was too slow
    turns: 1
    max_tool_calls: 1
    tool_runs: {look: 1}
    calls: {root: [look]}
    answer_contains: [a chair, a table]
    answer_lacks: [a chair]
    requires_trace_events: [model.retry]
- case_id: right
  goal: Say it.
  model: [{text: It.}]
  expected: {stop_reason: completed, max_turns: 10}
`

// TestBlessRewritesWhatDoesNotHold: the expectations describe the new result, and nothing else changes.
func TestBlessRewritesWhatDoesNotHold(t *testing.T) {
	t.Parallel()
	text, verdicts := blessed(t, "cases.yaml", wrongCases)
	for _, v := range verdicts {
		if !v.Pass {
			t.Errorf("%s: %q", v.Case, v.Differences)
		}
	}
	for _, want := range []string{"# Two cases.", "goal: Look. # twice", "stop_reason: completed", "turns: 3", "max_tool_calls: 2", "answer_contains: [a chair]", "max_turns: 10"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, gone := range []string{"a table", "answer_lacks", event.KindModelRetry} {
		if strings.Contains(text, gone) {
			t.Errorf("%q in\n%s", gone, text)
		}
	}
	if again, _ := blessed(t, "again.yaml", text); again != text {
		t.Errorf("a case that passes was rewritten:\n%s", again)
	}
}

// TestBlessKeepsTheFormOfJSON: a file of JSON stays one, with its keys in order.
func TestBlessKeepsTheFormOfJSON(t *testing.T) {
	t.Parallel()
	text, verdicts := blessed(t, "case.json", `{"case_id": "j", "goal": "Say <it>.", "model": [{"text": "It."}], "expected": {"stop_reason": "failed", "turns": 9}}`)
	if !verdicts[0].Pass || !strings.HasPrefix(text, "{\n  \"case_id\": \"j\",\n  \"goal\":") || !strings.Contains(text, `"turns": 1`) {
		t.Errorf("%q\n%s", verdicts[0].Differences, text)
	}
}

// TestBlessAcceptsNoForbiddenTool: what is no expectation stays a failure.
func TestBlessAcceptsNoForbiddenTool(t *testing.T) {
	t.Parallel()
	_, verdicts := blessed(t, "case.yaml", `
case_id: forbidden
goal: Look.
mocked_tools: {look: [{status: ok}]}
model:
  - calls: [{name: look}, {name: look}]
during: [{after: model.retry, cancel: now}]
expected: {stop_reason: failed, forbidden_tools: [look]}
`)
	got := verdicts[0].Differences
	for _, want := range []string{"the forbidden tool look ran 2 times", "the case has fewer answers", "during: there was no model.retry"} {
		if !slices.ContainsFunc(got, func(d string) bool { return strings.Contains(d, want) }) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if verdicts[0].StopReason != verdicts[0].Expected {
		t.Errorf("the stop reason was not blessed: %q", got)
	}
}

// TestBlessWritesWhereALinkLeads: a link to a file of cases stays one.
func TestBlessWritesWhereALinkLeads(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "cases.yaml"), filepath.Join(dir, "link.yaml")
	if err := os.WriteFile(path, []byte(wrongCases), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("cases.yaml", link); err != nil {
		t.Fatal(err)
	}
	if changed, err := eval.Bless(t.Context(), 1, link); err != nil || len(changed) != 1 {
		t.Fatalf("%q %v", changed, err)
	}
	if to, err := os.Readlink(link); err != nil || to != "cases.yaml" {
		t.Errorf("%q %v", to, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) == wrongCases {
		t.Errorf("the file is as it was: %v", err)
	}
}
