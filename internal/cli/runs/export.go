package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/control"
)

// Export makes the command export.
func (cs *Commands) Export() *cobra.Command {
	var who string
	c := &cobra.Command{
		Use: "export RUN[@TURN]", Args: command.Exactly("RUN"),
		Short: "Write an agent's complete history as JSON",
		Long: `Write an agent's history as JSON: every message, including those removed from the
prompt, with usage and provider-specific data. "run --history FILE" starts a run with it.`,
		Example: `  troupe export 01k9z3 > history.json
  troupe export 01k9z3@4 --agent root-1-0 | jq '.messages[].text'
  troupe run --history history.json "And what about the tests?"`,
		Annotations: map[string]string{command.Formats: "json jsonl yaml"},
		RunE: func(_ *cobra.Command, args []string) error {
			text, turn, err := control.ParseFork(args[0])
			if err != nil {
				return exit.UsageError("troupe export RUN, or RUN@TURN", "%q names no run", args[0])
			}
			after := &turn
			if turn < 0 {
				after = nil
			}
			return cs.Sessions.VisitRun(session.ToInspect, text, func(ctx context.Context, s *session.Session, run string) error {
				doc, err := s.Export(ctx, run, who, after)
				if err != nil {
					return err
				}
				return cs.Console.PrintJSON(doc)
			})
		},
	}
	c.Flags().StringVar(&who, "agent", "", "agent's id (default root)")
	return c
}
