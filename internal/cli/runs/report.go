package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client/report"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Report makes the command report.
func (cs *Commands) Report() *cobra.Command {
	return &cobra.Command{
		Use: "report RUN", Args: command.Exactly("RUN"),
		Short: "Show what each step of a run cost",
		Long: `Show each step of each agent: a reply of the model with its latency, usage and finish
reason, and the calls of that reply with their arguments, the size of the result, latency,
errors and the metrics that the tool reported. The sums are those of the steps.`,
		Example:     "  troupe report 01k9z3\n  troupe report 01k9z3 -o json |\n    jq '[.steps[].calls[] | {tool, latency_ms, metrics}]'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				r, err := report.Read(ctx, s, run)
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(r)
				}
				return cs.Console.PrintLines(newReportPage(cs.Console, r).draw())
			})
		},
	}
}

// reportPage draws one report.
type reportPage struct {
	*console.Page
	style  term.Style
	report report.Report
	names  map[string]string // of the agents, by id
}

func newReportPage(c *console.Console, r report.Report) *reportPage {
	p := &reportPage{Page: c.NewPage(), style: c.Style, report: r, names: map[string]string{}}
	for _, a := range r.Agents {
		p.names[a.ID] = a.Name
	}
	return p
}

// draw returns the lines of the report: the steps of the run, the agents and the sum.
func (p *reportPage) draw() []string {
	r := p.report
	var rows [][]string
	for _, a := range r.Agents {
		rows = append(rows, totalsRow(term.CleanLine(a.Name)+" "+p.style.Dim(term.CleanLine(a.ID)), a.Totals, r))
	}
	for _, s := range r.Steps {
		p.addStep(s)
	}
	end := "not ended"
	if r.Ended {
		end = term.FormatReason(r.Reason)
	}
	rows = append(rows, totalsRow(p.style.Bold(term.CleanLine(end))+" after "+console.Took(r.DurationMS), r.Totals, r))
	for _, g := range r.Guardrails {
		p.AddLine(p.describeFinding(g))
	}
	p.AddLine("")
	heads := []string{"STEPS", "MODEL", "TOOLS", "IN", "OUT", "COST", "CALLS"}
	if r.Totals.Skipped > 0 {
		heads = append(heads, "SKIP")
	}
	if r.Totals.Failed > 0 {
		heads = append(heads, "FAIL")
	}
	p.AddTable(append(console.Left("AGENT"), console.Right(heads...)...), rows)
	if text := describeUnknown(r); text != "" {
		p.AddLine(p.style.Yellow(text))
	}
	return p.Lines
}

// describeUnknown says what the run was charged for calls of unknown usage, which are in no sum; "": there were none. A call
// that ended with its process left no attempt.
func describeUnknown(r report.Report) string {
	if r.Unknown == 0 && r.ChargedUnknown == 0 {
		return ""
	}
	text := "model calls of unknown usage"
	if r.Unknown > 0 {
		text = console.CountOf(r.Unknown, "model call") + " of unknown usage"
	}
	if r.ChargedUnknown == 0 {
		return text + ": the result of the run charges what was reserved for them"
	}
	text += ": " + term.FormatTokens(r.ChargedUnknown) + " tokens were charged for them, which no step has"
	if r.ChargedUSD > 0 {
		text += "; with them the run has cost " + term.FormatUSD(r.ChargedUSD, r.CostEstimated)
	}
	return text
}

// totalsRow is a row of the table of sums. It counts skipped and failed calls if the run has any.
func totalsRow(name string, t report.Totals, r report.Report) []string {
	cost := "unknown"
	if t.CostUSD != nil {
		cost = term.FormatUSD(*t.CostUSD, r.CostEstimated)
	}
	row := []string{name, fmt.Sprint(t.Steps), console.Took(t.ModelMS), console.Took(t.ToolMS), term.FormatTokens(t.Usage.Prompt()), term.FormatTokens(t.Usage.Output),
		cost, fmt.Sprint(t.Calls)}
	if r.Totals.Skipped > 0 {
		row = append(row, fmt.Sprint(t.Skipped))
	}
	if r.Totals.Failed > 0 {
		row = append(row, fmt.Sprint(t.Failed))
	}
	return row
}

func (p *reportPage) addStep(s *report.Step) {
	head := fmt.Sprintf("%s turn %d", p.style.Bold(term.CleanLine(p.names[s.Agent])), s.Turn)
	if s.Model == "" { // no reply
		p.AddLine(head)
	} else {
		p.AddLine(fmt.Sprintf("%s: %s after %s, %s in, %s out  %s", head, term.CleanLine(string(s.Finish)), console.Took(s.ModelMS),
			term.FormatTokens(s.Usage.Prompt()), term.FormatTokens(s.Usage.Output), p.style.Dim(term.ModelName(s.Model))))
	}
	for _, a := range s.Attempts {
		if a.Error != "" || a.Purpose != "" {
			p.AddLine(indent + strings.TrimSpace(fmt.Sprintf("%s %s in %s %s", term.ModelName(a.Model), term.CleanLine(a.Purpose+string(a.Error)), console.Took(a.LatencyMS), term.CleanLine(a.Detail))))
		}
	}
	for _, c := range s.Calls {
		p.AddLine(indent + p.describeCall(c))
	}
}

// describeFinding draws what a guardrail found.
func (p *reportPage) describeFinding(g report.Guardrail) string {
	text := fmt.Sprintf("%s turn %d: %s %s %s at %s %s", p.style.Bold(term.CleanLine(p.names[g.Agent])), g.Turn, term.CleanLine(g.Name),
		p.style.Red(term.CleanLine(string(g.Severity))), term.CleanLine(string(g.Decision)), term.CleanLine(string(g.Point)), term.CleanLine(g.Call))
	text = strings.TrimSpace(text)
	if g.Report {
		text += " (only reported)"
	}
	return text + ": " + term.CleanLine(g.Why)
}

func (p *reportPage) describeCall(c *report.Call) string {
	text := term.CleanLine(c.ID) + " " + p.style.Bold(term.CleanLine(c.Tool))
	switch {
	case c.Skipped:
		text += p.style.Yellow("  skipped")
	case !c.Ended:
		text += p.style.Yellow("  not ended")
	default:
		text += p.style.Dim(fmt.Sprintf("  %s, %d bytes", console.Took(c.LatencyMS), c.ResultBytes))
	}
	if c.Attempts > 1 {
		text += fmt.Sprintf("  %d attempts", c.Attempts)
	}
	for _, name := range sortedNames(c.Metrics) {
		text += fmt.Sprintf("  %s=%g", term.CleanLine(name), c.Metrics[name])
	}
	if c.Error != "" {
		text += "  " + p.style.Red(term.CleanLine(c.Error))
	}
	// last, because a narrow terminal cuts the line
	return text + "  " + term.Truncate(term.CleanLine(c.Arguments), argsBytes)
}

func sortedNames(m map[string]float64) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
