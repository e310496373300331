package recording

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/compare"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/term"
)

// Compare makes the command compare.
func (cs *Commands) Compare() *cobra.Command {
	return &cobra.Command{
		Use: "compare RUN|FILE RUN|FILE", Args: command.Exactly("RUN|FILE", "RUN|FILE"),
		Short: "Name the first difference of two runs; compare ends and costs",
		Long: `Compare two runs, such as a run and a fork of it (docs/fork.md). The command shows the first
difference between agents of the same id (a message, a reply, a call, a result or an answer),
and the stop reason, the cost and the answer of both runs. Times are not compared.

The logs are replayed without a model or a tool. The exit code is 0 if the comparison
succeeds, whether or not the runs differ.`,
		Example:     "  troupe compare 01k9z3 last\n  troupe compare ./before.jsonl ./after.jsonl -o json | jq .first_difference",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			var sides [2]compare.Run
			for i, text := range args {
				f, err := cs.Load(text)
				if err == nil {
					err = refuseRedacted(f)
				}
				if err == nil {
					sides[i], err = compare.ReadRun(f)
				}
				if errors.Is(err, replay.ErrNoLog) {
					err = exit.UsageError("troupe verify "+f.Header.Run+" shows what is wrong", "%w", err)
				}
				if err != nil {
					return err
				}
			}
			return cs.printComparison(compare.Runs(sides[0], sides[1]))
		},
	}
}

// comparedTextMax is the most bytes of each side of a difference in a terminal.
const comparedTextMax = 400

func (cs *Commands) printComparison(c compare.Comparison) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(c)
	}
	var lines []string
	for _, side := range []compare.Run{c.A, c.B} {
		line := fmt.Sprintf("%s: %s, %s, %s, %d tokens, %s", side.RunID, cmp.Or(term.FormatReason(spec.Reason(side.Reason)), "not ended"), term.FormatCount(side.Agents, "agent"), term.FormatCount(side.Turns, "turn"), side.Tokens, term.FormatUSD(side.CostUSD, side.IsEstimate))
		if c.A.Model != c.B.Model {
			line += ", model " + side.Model
		}
		if side.Fork != "" {
			line += ", a fork of " + side.Fork
		}
		lines = append(lines, term.CleanLine(line))
	}
	if c.First == nil {
		lines = append(lines, "no difference")
	} else {
		where := fmt.Sprintf("first difference: %s, turn %d, %s", c.First.Agent, c.First.Turn, c.First.Kind)
		if c.First.Call != "" {
			where += " " + c.First.Call
		}
		lines = append(lines, term.CleanLine(where))
		for _, side := range []struct{ mark, text string }{{"- ", c.First.A}, {"+ ", c.First.B}} {
			lines = append(lines, side.mark+term.CleanLine(clip.Text(cmp.Or(side.text, "nothing"), comparedTextMax)))
		}
	}
	if c.Text != "" {
		lines = append(lines, strings.Split(strings.TrimSuffix(c.Text, "\n"), "\n")...)
	}
	return cs.Console.PrintLines(lines)
}
