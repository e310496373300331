package recording

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
)

// Replay makes the command replay.
func (cs *Commands) Replay() *cobra.Command {
	var assert bool
	c := &cobra.Command{
		Use: "replay RUN|FILE", Args: exactlyOne,
		Short: "Replay a run: does this version decide the same?",
		Long: `Replay a run offline, in memory: without a model, a tool, a key or a network. The
recorded entries of every log are fed to the loop and the supervisor of this version,
and what they decide is compared with what the logs record. If this version decides
otherwise, the first difference is shown: the entry, the state before it, the recorded
decision and the new one. docs/replay.md says what the logs record and what not.

FILE is a run file, as "troupe export RUN --logs" writes it: an argument with a dot or
a slash is a file. A run that has not ended is replayed as far as its logs go; of a file
that calls its run finished or parked, the logs must show that.

The exit code is 0 if the replay came to the end of the logs, 1 if a log is damaged,
and with --assert 1 also if this version decides otherwise.`,
		Example: `  troupe replay last
  troupe export last --logs > run.jsonl; troupe replay ./run.jsonl --assert
  troupe replay ./run.jsonl -o json | jq .difference`,
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := cs.Load(args[0])
			if err != nil {
				return err
			}
			return cs.replay(f, assert)
		},
	}
	c.Flags().BoolVar(&assert, "assert", false, "exit with 1 if this version decides otherwise")
	return c
}

// replayReport is what the command prints.
type replayReport struct {
	Run        string             `json:"run_id"`
	Same       bool               `json:"same"`
	Ended      bool               `json:"ended"`
	Closed     bool               `json:"closed"` // the log of the run has the entry that closes it
	StopReason string             `json:"stop_reason,omitempty"`
	Logs       int                `json:"logs"`
	Entries    int                `json:"entries"`
	Messages   int                `json:"messages"`    // compared
	OwnEntries int                `json:"own_entries"` // compared
	Unchecked  int                `json:"unchecked"`   // messages whose cause was not read
	Ignored    string             `json:"ignored,omitempty"`
	Damage     string             `json:"damage,omitempty"`
	Difference *replay.Difference `json:"difference,omitempty"`
	TookMS     float64            `json:"took_ms"`
	Result     *event.Result      `json:"result,omitempty"`
}

func (cs *Commands) replay(f runfile.File, assert bool) error {
	began := time.Now()
	run := replay.Logs(f.Entries, replay.Options{})
	took := time.Since(began)
	if f.Header.Redacted {
		return exit.UsageError("replay the run itself, or a file without --redact",
			"the file of %s is redacted: its texts are not those that were decided on", f.Header.Run)
	}
	if errors.Is(run.Err(), replay.ErrNoLog) {
		return exit.UsageError("troupe list shows the runs",
			"%s has no log of a supervisor: there is nothing to replay", f.Header.Run)
	}
	r := replayReport{Run: f.Header.Run, Ended: run.Ended, Closed: run.Closed, StopReason: string(run.Super.Outcome.Reason), Logs: len(run.Agents) + 1, Entries: run.Entries,
		Messages: run.Messages, OwnEntries: run.Answers, Unchecked: run.Unchecked, TookMS: float64(took.Microseconds()) / 1000}
	if run.Ended {
		r.Result = &run.Result
	}
	if run.ReadErr != nil {
		r.Ignored = run.ReadErr.Error()
	}
	if run.Damage != nil {
		r.Damage = run.Damage.Error()
	}
	r.Difference = run.Difference
	if r.Difference == nil && r.Damage == "" {
		r.Difference = cmp.Or(run.CompareState(f.Header.State), run.CompareResult(f.Header.Result))
	}
	r.Same = r.Difference == nil && r.Damage == ""
	if err := cs.printReplay(r); err != nil {
		return err
	}
	if r.Damage != "" || assert && !r.Same {
		return exit.WithCode(exit.Failed)
	}
	return nil
}

func (cs *Commands) printReplay(r replayReport) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(r)
	}
	lines := []string{fmt.Sprintf("%s: %d entries of %d logs replayed in %.1f ms; %d messages and %d own entries compared", r.Run, r.Entries, r.Logs, r.TookMS, r.Messages, r.OwnEntries)}
	if r.Unchecked > 0 {
		lines = append(lines, fmt.Sprintf("%d messages were not compared: the log of their sender was read before it held their cause", r.Unchecked))
	}
	if r.Ignored != "" {
		lines = append(lines, "not counted: "+r.Ignored)
	}
	switch d := r.Difference; {
	case r.Damage != "":
		lines = append(lines, cs.Console.Style.Red("damaged: "+r.Damage))
	case d != nil:
		lines = append(lines, cs.Console.Style.Red(fmt.Sprintf("this version decides otherwise, first at entry %d of %s", d.Entry, d.Log)),
			"  before:   "+d.State, "  recorded: "+d.Recorded, "  now:      "+d.New)
	case r.Ended && !r.Closed:
		lines = append(lines, "this version decides the same; the run ended: "+r.StopReason+" (its process ended before it closed the log)")
	case r.Ended:
		lines = append(lines, "this version decides the same; the run ended: "+r.StopReason)
	default:
		lines = append(lines, "this version decides the same as far as the logs go; the run has not ended")
	}
	return cs.Console.PrintLines(slices.Clip(lines))
}
