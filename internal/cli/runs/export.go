package runs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/recording"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/control"
)

// Export makes the command export.
func (cs *Commands) Export() *cobra.Command {
	var who string
	var logs, blobs, html bool
	c := &cobra.Command{
		Use: "export RUN[@TURN]", Args: command.Exactly("RUN"),
		Short: "Write an agent's complete history as JSON",
		Long: `Write an agent's history as JSON: every message, including those removed from the
prompt, with usage and provider-specific data. "run --history FILE" starts a run with it.

With --logs, write the run file instead: every entry of every log of the run, which
replay, verify and fixture read without a node (docs/replay.md). With --blobs it also has
what diff and undo need: the contents of changed files, and whole results and attachments.

With --html, write one page of the run that opens from disk without a network: agents,
timeline, transcripts, budget and why it stopped (docs/ui.md).`,
		Example: `  troupe export 01k9z3 > history.json
  troupe export 01k9z3@4 --agent root-1-0 | jq '.messages[].text'
  troupe run --history history.json "And what about the tests?"
  troupe export last --html > run.html
  troupe export last --logs > run.jsonl; troupe replay ./run.jsonl
  troupe export last --logs --blobs > run.jsonl; troupe diff ./run.jsonl`,
		Annotations: map[string]string{command.Formats: "json jsonl yaml"},
		RunE: func(_ *cobra.Command, args []string) error {
			text, turn, err := control.ParseFork(args[0])
			if err != nil {
				return exit.UsageError("troupe export RUN, or RUN@TURN", "%q names no run", args[0])
			}
			if blobs && !logs {
				return exit.UsageError("troupe export RUN --logs --blobs", "--blobs is for --logs")
			}
			if html {
				if logs || turn >= 0 || who != "" {
					return exit.UsageError("troupe export RUN --html", "a page is of a whole run: leave out --logs, --agent and @TURN")
				}
				return cs.exportPage(text)
			}
			if logs {
				return cs.exportLogs(text, turn >= 0 || who != "", blobs)
			}
			after := &turn
			if turn < 0 {
				after = nil
			}
			return cs.Sessions.VisitRun(session.ToInspect, text, func(ctx context.Context, s *session.Session, run string) error {
				id, err := s.FindAgent(ctx, run, who)
				if err != nil {
					return err
				}
				doc, err := s.Export(ctx, run, id, after)
				if err != nil {
					return err
				}
				return cs.Console.PrintJSON(doc)
			})
		},
	}
	c.Flags().StringVar(&who, "agent", "", command.AgentFlag+" (default root)")
	c.Flags().BoolVar(&logs, "logs", false, "write all logs of the run as a run file")
	c.Flags().BoolVar(&blobs, "blobs", false, "with --logs: also the blobs that the logs name")
	c.Flags().BoolVar(&html, "html", false, "write one page of the run that opens from disk")
	return c
}

// exportLogs writes a run file.
func (cs *Commands) exportLogs(run string, partial, blobs bool) error {
	if partial {
		return exit.UsageError("leave out @TURN and --agent", "a run file has all logs of a run")
	}
	return cs.Sessions.VisitRun(session.ToInspect, run, func(ctx context.Context, s *session.Session, run string) error {
		f, err := recording.ReadRun(ctx, s.Client, run)
		if err != nil {
			return err
		}
		if blobs {
			missing, err := recording.ReadBlobs(ctx, s.Client, &f)
			if err != nil {
				return err
			}
			if missing > 0 {
				cs.Console.Say(fmt.Sprintf("%d blobs that the logs name are not there", missing))
			}
		}
		return recording.Print(cs.Console, f)
	})
}
