package recording

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/verify"
)

// Verify makes the command verify.
func (cs *Commands) Verify() *cobra.Command {
	return &cobra.Command{
		Use: "verify RUN|FILE", Args: exactlyOne,
		Short: "Check a run's logs against the rules, and show why it stopped",
		Long: `Check the logs of a run by the logs alone, with code that shares nothing with the loop:
the hashes chain, one activation acts at a time, a side effect begins once and has one
result, tokens, money and tool calls are reserved before they are settled, settled once, and
within the limits in force, nothing is asked for after a cancel, and rights only shrink. docs/replay.md lists the
rules. Then print how the run came to its stop, with the entries that show it.

The exit code is 0 if no rule is broken, 1 if one is.`,
		Example: `  troupe verify last
  troupe verify ./run.jsonl -o json | jq .findings`,
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := cs.Load(args[0])
			if err != nil {
				return err
			}
			return cs.verify(f)
		},
	}
}

// verifyReport is what the command prints.
type verifyReport struct {
	Run  string `json:"run_id"`
	Kept bool   `json:"rules_kept"`
	verify.Report
}

func (cs *Commands) verify(f runfile.File) error {
	if f.Header.Redacted {
		return exit.UsageError("verify the run itself, or a file that is not redacted",
			"the file of %s is redacted: its hashes no longer hold", f.Header.Run)
	}
	claim, err := claimOf(f)
	if err != nil {
		return err
	}
	r := verifyReport{Run: f.Header.Run, Report: verify.Run(f.Entries, claim)}
	r.Kept = len(r.Findings) == 0
	if err := cs.printVerify(r); err != nil {
		return err
	}
	if !r.Kept {
		return exit.WithCode(exit.Failed)
	}
	return nil
}

// claimOf returns the state of a run that the first line of its file gives.
func claimOf(f runfile.File) (verify.Claim, error) {
	var result struct {
		Reason string `json:"stop_reason"`
	}
	if len(f.Header.Result) > 0 {
		if err := json.Unmarshal(f.Header.Result, &result); err != nil {
			return verify.Claim{}, exit.UsageError("troupe export RUN --logs writes a run file",
				"the result in the file of %s does not decode: %s", f.Header.Run, err)
		}
	}
	return verify.Claim{State: f.Header.State, Reason: result.Reason}, nil
}

func (cs *Commands) printVerify(r verifyReport) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(r)
	}
	lines := []string{fmt.Sprintf("%s: %s of %s; %s, %s, %s of calls and %s checked", r.Run,
		countOf(r.Entries, "entry", "entries"), countOf(r.Logs, "log", "logs"), countOf(r.Chained, "hash", "hashes"), countOf(r.Messages, "message", "messages"),
		countOf(r.Calls, "attempt", "attempts"), countOf(r.Settled, "settlement", "settlements")), r.Sums.String()}
	for _, f := range r.Findings {
		lines = append(lines, cs.Console.Style.Red("broken: "+f.String()))
	}
	if r.Kept {
		lines = append(lines, "no rule is broken")
	}
	if r.Damaged {
		lines = append(lines, "the logs record that one of them was damaged: the rules between logs were not checked")
	}
	lines = append(lines, stopLine(r.Certificate))
	for _, fact := range r.Certificate.Facts {
		lines = append(lines, "  "+fact)
	}
	return cs.Console.PrintLines(slices.Clip(lines))
}

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// stopLine says how a run stopped, in one line.
func stopLine(c verify.Certificate) string {
	switch {
	case c.Reason == "" && c.Waits != "":
		return "the run has not ended: it waits for a person (" + c.Waits + "):"
	case c.Reason == "":
		return "the run has not ended"
	case c.Rule == "" || c.Rule == c.Reason:
		return "the run stopped as " + c.Reason + ":"
	}
	return "the run stopped as " + c.Reason + ", by: " + c.Rule
}
