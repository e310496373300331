package eval

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/troupe-run/troupe/internal/runfile"
)

// Runs are recorded once for each release, beside those of earlier ones, and never again:
//
//	go test ./internal/eval -run TestRecordRuns -record-runs 0.1.0
//
// TestRecordedRuns of internal/replay replays them for ever.
var recordRuns = flag.String("record-runs", "", "record runs of eval cases as those of this version, under internal/replay/testdata/runs")

const recordedRuns = "../replay/testdata/runs"

// recordedCases are cases that end in different ways.
var recordedCases = []string{"aborted_tools", "background_wakes_who_waits", "canceled_at_the_boundary", "chain_goes_on_after_a_restart", "children_side_by_side",
	"compaction_keeps_what_is_needed", "completes_within_budget", "guardrail_trips", "journal_outlives_the_transcript", "model_fallback_exhausted", "parked_and_answered",
	"parked_for_a_person", "resume_never_repeats_an_effect", "shipping_lookup_repeated_failure", "timeout_hard", "token_budget", "tool_retries_end", "vetoed_for_good"}

// TestRecordRuns records runs, when it is asked for.
func TestRecordRuns(t *testing.T) {
	if *recordRuns == "" {
		return // TestRecordedRuns reads what was recorded
	}
	dir := filepath.Join(recordedRuns, filepath.Base(*recordRuns))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatalf("a version is recorded once: %v", err)
	}
	cases, err := LoadCases("../../test/evals")
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		c := &cases[i]
		if !slices.Contains(recordedCases, c.ID) {
			continue
		}
		f, err := c.Record(t.Context(), *recordRuns)
		if err != nil {
			t.Fatal(err)
		}
		writeRun(t, filepath.Join(dir, c.ID+".jsonl"), f)
	}
}

func writeRun(t *testing.T, path string, f runfile.File) {
	t.Helper()
	out, err := os.Create(path)
	if err == nil {
		err = runfile.Write(out, f)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
