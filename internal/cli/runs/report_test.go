package runs

import (
	"os"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client/report"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/term"
)

// The table of sums says where the cost of a call is unknown, and fits 80 columns also if calls were skipped or failed.
func TestReportFitsATerminalAndNamesUnknownCosts(t *testing.T) {
	t.Parallel()
	out, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // only read
	foreign := &report.Call{ID: "1-0", Tool: "delegate", Arguments: strings.Repeat("x", 200), Ended: true, ResultBytes: 7, Metrics: map[string]float64{"cost_unknown": 1}}
	r := report.Report{Ended: true, Reason: "completed", Totals: report.Totals{Steps: 2, Calls: 2, Failed: 1},
		Agents: []report.Agent{{ID: "root", Name: "boss", Totals: report.Totals{Steps: 1, Calls: 1}},
			{ID: "root-1-1", Name: "clerk", Totals: report.Totals{Steps: 1, Calls: 1, Failed: 1, CostUSD: new(float64), CostKnown: true}}},
		Steps: []*report.Step{{Agent: "root", Turn: 1, Calls: []*report.Call{foreign}}}}
	lines := newReportPage(&console.Console{Out: out}, r).draw()
	row := func(start string) string {
		for _, line := range lines {
			if strings.HasPrefix(line, start) {
				return line
			}
		}
		t.Fatalf("no line begins with %q in\n%s", start, strings.Join(lines, "\n"))
		return ""
	}
	if head := row("AGENT"); !strings.Contains(head, "FAIL") || strings.Contains(head, "SKIP") || term.Width(head) > 80 {
		t.Errorf("%d columns: %q", term.Width(head), head)
	}
	for start, unknown := range map[string]bool{"boss root": true, "clerk root-1-1": false, "completed after": true} {
		if line := row(start); strings.Contains(line, "unknown") != unknown {
			t.Errorf("%q", line)
		}
	}
	if call := row("  1-0"); strings.Index(call, "7 bytes") > strings.Index(call, "xxx") {
		t.Errorf("the size of the result stands behind the arguments: %q", call)
	}
}
