package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/runfile"
)

// TestVerifiedRunsCanFail: the judge that verifies and replays the logs of a run passes a recorded run, and reports each of
// a lost entry and another end than was told.
func TestVerifiedRunsCanFail(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../internal/replay/testdata/runs/0.1.0/completes_within_budget.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	f, err := runfile.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	v := &verifiedRuns{}
	if problems, err := v.judge("eval", f.Entries, nil); err != nil || len(problems) > 0 || v.runs != 1 || v.ended != 1 {
		t.Errorf("a run without a fault: %v %v %s", problems, err, v)
	}
	last := slices.Delete(slices.Clone(f.Entries), len(f.Entries)-4, len(f.Entries)-3)
	if problems, _ := v.judge("eval", last, nil); len(problems) == 0 || v.findings+v.differences == 0 {
		t.Errorf("without an entry: %v %s", problems, v)
	}
	told := &event.Result{Run: "eval", Reason: spec.Vetoed}
	problems, _ := v.judge("eval", f.Entries, told)
	if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, "was told as vetoed") }) {
		t.Errorf("another end than was told: %v", problems)
	}
}
