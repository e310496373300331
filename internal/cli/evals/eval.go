// Package evals holds the command that runs eval cases.
package evals

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/eval"
	"github.com/troupe-run/troupe/internal/term"
)

// Commands run eval cases.
type Commands struct {
	Console *console.Console
}

// Eval makes the command eval.
func (cs *Commands) Eval() *cobra.Command {
	parallel, bless := 0, false
	c := &cobra.Command{
		Use: "eval FILE...", Annotations: map[string]string{command.Formats: command.DataFormats},
		Short: "Run eval cases with mocked tools and a scripted model",
		Long: `Run the cases of files, and of directories in which each .yaml, .yml and .json file
holds cases. A case is a real run: the same loop, supervisor and logs, in memory;
only the model is scripted and the tools are mocked. Its logs are replayed
afterwards and must give the same end, and they are verified ("troupe verify"). No key
and no network are needed.

With --bless, the expectations of cases that fail are rewritten in their files, so that
they describe the new result; read the difference before you keep it. A forbidden tool
that ran, a replay that differs and logs that break a rule stay failures. "troupe fixture" makes a case of a run.

The exit code is 0 if all cases pass, 1 if one does not, 2 if a file is not one
of cases. docs/evals.md shows the form of a case.`,
		Example: `  troupe eval test/evals
  troupe eval test/evals/refund test/evals/endings/max_turns.yaml
  troupe eval test/evals -o json
  troupe fixture last --expect recorded > case.yaml
  troupe eval case.yaml --bless`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.UsageError("name files of cases, or directories of them", "eval takes at least one FILE")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if bless {
				if err := cs.bless(c.Context(), parallel, args); err != nil {
					return err
				}
			}
			cases, err := eval.LoadCases(args...)
			if err != nil {
				return explainBadFile(err)
			}
			r := eval.Run(c.Context(), cases, parallel)
			if err := cs.printReport(r); err != nil {
				return err
			}
			if !r.Pass {
				return exit.WithCode(exit.Failed)
			}
			return nil
		},
	}
	c.Flags().IntVar(&parallel, "parallel", eval.ParallelDefault, "cases that run at once")
	c.Flags().BoolVar(&bless, "bless", false, "rewrite the expectations of cases that fail to the new result")
	return c
}

// bless rewrites expectations and names the cases.
func (cs *Commands) bless(ctx context.Context, parallel int, paths []string) error {
	changed, err := eval.Bless(ctx, parallel, paths...)
	for _, id := range changed {
		cs.Console.Say("rewritten: the expectations of " + term.CleanLine(id))
	}
	return explainBadFile(err)
}

// explainBadFile turns the error of a file into an error of usage.
func explainBadFile(err error) error {
	if bad := (*eval.BadFile)(nil); errors.As(err, &bad) {
		return exit.UsageError(bad.Remedy, "%s", bad.Error())
	}
	return err
}

// printReport writes a line for each case, the differences below it, and the measures.
func (cs *Commands) printReport(r eval.Report) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(r)
	}
	rows := make([][]string, len(r.Verdicts))
	for i, v := range r.Verdicts {
		word := "pass"
		if !v.Pass {
			word = "FAIL"
		}
		rows[i] = []string{word, v.Case, string(v.StopReason), strconv.Itoa(v.Turns), strconv.Itoa(v.ToolRuns),
			strconv.FormatInt(v.Tokens, 10), strconv.FormatInt(v.LatencyMS, 10) + " ms", v.File}
	}
	if err := cs.Console.PrintTable([]string{"", "CASE", "STOP", "TURNS", "TOOLS", "TOKENS", "TOOK", "FILE"}, rows); err != nil {
		return err
	}
	for _, v := range r.Verdicts {
		for _, d := range v.Differences {
			if err := cs.Console.Print(cs.Console.Style.Red(fmt.Sprintf("%s: %s: %s", v.File, v.Case, term.CleanLine(d)))); err != nil {
				return err
			}
		}
	}
	for _, v := range r.Verdicts {
		if v.AsRecorded == nil || v.Pass {
			continue
		}
		how := "it fails as the run failed of which it was made"
		if !*v.AsRecorded {
			how = "it fails differently from its recorded run: " + strings.Join(v.Unlike, "; ")
		}
		if err := cs.Console.Print(fmt.Sprintf("%s: %s: %s", v.File, v.Case, term.CleanLine(how))); err != nil {
			return err
		}
	}
	if err := cs.Console.Print(""); err != nil {
		return err
	}
	return cs.Console.PrintTable([]string{"MEASURE", "VALUE", ""}, measureRows(r))
}

// measureRows are the figures of all cases, as rows.
func measureRows(r eval.Report) [][]string {
	rate := func(name string, of eval.Rate, what string) []string {
		if of.Of == 0 {
			return []string{name, "-", "nothing to measure"}
		}
		return []string{name, fmt.Sprintf("%.1f %%", of.Percent()), fmt.Sprintf("%d of %d %s", of.Hits, of.Of, what)}
	}
	cost := "no case has a price"
	for _, v := range r.Verdicts {
		if v.CostKnown {
			cost = term.FormatUSD(r.CostUSD, false) + " in the cases with a price"
		}
	}
	return [][]string{
		rate("cases", r.Cases, "pass"),
		rate("completion", r.Completion, "that should complete do"),
		rate("right stop reason", r.StopReason, "cases"),
		rate("invalid actions", r.Invalid, "proposals"),
		rate("repeated actions", r.Repeated, "proposals"),
		rate("escalation accuracy", r.Escalation, "turn to a person, or do not, as they should"),
		rate("replay success", r.Replay, "replay from their logs to the same end"),
		{"tokens", strconv.FormatInt(r.Tokens, 10), cost},
		{"tool runs", strconv.Itoa(r.ToolRuns), ""},
		{"latency", fmt.Sprintf("%d ms", r.P50MS), fmt.Sprintf("median; %d ms at most; %d ms in all", r.MaxMS, r.TookMS)},
	}
}
