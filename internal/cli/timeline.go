package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

func (a *runsCommands) timelineCommand() *cobra.Command {
	return &cobra.Command{
		Use: "timeline RUN", Args: exactly("RUN"),
		Short: "Show what each agent did when",
		Long: `Draw a bar for each agent over the time of the run: when its model answered, when
tools ran, and when it waited, and for what.

With -o json each span has its agent, kind (turn, model, tool, waiting), name, and
its beginning and end in milliseconds since the beginning of the run.`,
		Example:     "  troupe timeline 01k9z3\n  troupe timeline 01k9z3 -o json | jq '[.[] | select(.kind == \"model\") | .end_ms - .start_ms] | add'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error { return a.timeline(ctx, s, args[0]) })
		},
	}
}

func (a *runsCommands) timeline(ctx context.Context, s *seat, run string) error {
	var t term.Timeline
	err := s.Events(ctx, run, nil, false, func(e client.Event, _ []byte) error {
		t.Take(e)
		return nil
	})
	if err != nil {
		return err
	}
	if a.console.output != "table" {
		return a.console.printData(t.Spans(time.Now()))
	}
	width, _ := term.Size(a.console.out)
	return a.console.lines(t.Lines(a.console.style, time.Now(), width))
}
