package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/client/report"
)

// How long a run that waits has worked is not how long ago it began.
func TestTheDurationOfARunThatHasNotEnded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 44, 0, time.UTC)
	for state, want := range map[client.RunState]string{client.RunParked: "began 44s ago, last step after 2.1s", client.RunFinished: "2.1s in total"} {
		d := description{RunInfo: client.RunInfo{State: state, Started: "2026-01-02T03:04:00Z", Result: &event.Result{DurationMS: 2100}}}
		if got := describeDuration(d, now); got != want {
			t.Errorf("%s: %q", state, got)
		}
	}
}

// A report whose sums lack calls of unknown usage says so, also if their process left no attempt.
func TestAReportNamesCallsOfUnknownUsage(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]report.Report{
		"": {},
		"model calls of unknown usage: 26k tokens were charged for them, which no step has; with them the run has cost $0.05": {ChargedUnknown: 26000, ChargedUSD: 0.0524},
		"1 model call of unknown usage: 900 tokens were charged for them, which no step has":                                  {ChargedUnknown: 900, Totals: report.Totals{Unknown: 1}},
		"2 model calls of unknown usage: the result of the run charges what was reserved for them":                            {Totals: report.Totals{Unknown: 2}},
	} {
		if got := describeUnknown(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A run without a directory has no files that it may write, and the bound of costs is a sentence.
func TestConfigurationTexts(t *testing.T) {
	if got := writableText(client.Description{Writable: []string{"report.md"}}); got != "" {
		t.Error(got)
	}
	if got := writableText(client.Description{Workspace: "/src", Writable: []string{"report.md", "report.json"}}); got != "report.md, report.json without asking" {
		t.Error(got)
	}
	for m, want := range map[client.ModelInfo]string{
		{Bound: "exact"}: "exact: a call costs at most what is reserved for it",
		{Bound: "none"}:  "none: no maximum is published, so a call may cost more than is reserved for it",
		{Bound: "none", Why: "defined by this program"}: "",
	} {
		if got := boundText(m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := limitsText(spec.RunLimits{Nano: 500_000_000}, spec.Limits{}, 0); !strings.Contains(got, "$0.50,") {
		t.Error(got)
	}
}
