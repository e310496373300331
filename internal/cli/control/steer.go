package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Steer makes the command steer.
func (cs *Commands) Steer() *cobra.Command {
	var who string
	var now bool
	c := &cobra.Command{
		Use: "steer RUN TEXT", Args: command.Exactly("RUN", "TEXT"),
		Short:       "Send a message that a working agent reads at its next turn",
		Example:     "  troupe steer 01k9z3 \"Leave the vendored code out\"\n  troupe steer 01k9z3 --agent historian \"Only this year\"\n  troupe steer 01k9z3 --now \"Do not deploy\"",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				id, err := s.FindAgent(ctx, run, who)
				if err == nil {
					err = s.Steer(ctx, client.SteerRequest{RunID: run, Agent: id, Text: args[1], Now: now})
				}
				if err != nil {
					return err
				}
				if id == "" {
					id = string(spec.Root)
				}
				line := term.CleanLine(id) + " reads the message at its next turn"
				if now {
					line = term.CleanLine(id) + " ends its turn and reads the message"
				}
				return cs.printInForce(ctx, s, run, line, map[string]any{"agent": id, "now": now})
			})
		},
	}
	c.Flags().StringVar(&who, "agent", "", command.AgentFlag+" (default root)")
	c.Flags().BoolVar(&now, "now", false,
		"do not wait for the end of the turn: abort its model request and its reads, and begin no further call; a call "+
			"with a side effect that has begun completes")
	return c
}
