package runs

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Timeline makes the command timeline.
func (cs *Commands) Timeline() *cobra.Command {
	return &cobra.Command{
		Use: "timeline RUN", Args: command.Exactly("RUN"),
		Short: "Show what each agent did when",
		Long: `Draw a bar for each agent over the duration of the run: model calls, tool calls, and
what it waited for.

With -o json each span has its agent, kind (turn, model, tool, waiting), name, and its
start and end in milliseconds since the start of the run.`,
		Example:     "  troupe timeline 01k9z3\n  troupe timeline 01k9z3 -o json |\n    jq '[.[] | select(.kind == \"model\") | .end_ms - .start_ms] | add'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				return cs.printTimeline(ctx, s, run)
			})
		},
	}
}

func (cs *Commands) printTimeline(ctx context.Context, s *session.Session, run string) error {
	var t term.Timeline
	err := s.Events(ctx, run, nil, false, func(e client.Event, _ []byte) error {
		t.AddEvent(e)
		return nil
	})
	if err != nil {
		return err
	}
	if err := markInterrupted(ctx, s, run, t.Tree()); err != nil {
		return err
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(t.Spans(time.Now()))
	}
	width, _ := term.Size(cs.Console.Out)
	return cs.Console.PrintLines(t.Lines(cs.Console.Style, time.Now(), width))
}
