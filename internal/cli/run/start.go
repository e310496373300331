package run

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Start makes the command start.
func (cs *Commands) Start() *cobra.Command {
	var flags request.Flags
	c := &cobra.Command{
		Use:         "start [PROMPT|-]",
		Short:       "Start a run on a running node and return at once",
		Example:     "  run=$(troupe start --dir . \"Investigate this repository\")\n  troupe result --wait $run",
		Annotations: map[string]string{command.Formats: command.RunFormats},
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.Complete(cs.Console, cs.Origins, c, args); err != nil {
				return err
			}
			return cs.withFork(&flags, func() error { return cs.startRun(c.Context(), &flags) })
		},
	}
	flags.AddFlags(c.Flags())
	return c
}

// startRun starts the run on a node that outlives this process, and returns.
func (cs *Commands) startRun(ctx context.Context, flags *request.Flags) (err error) {
	if flags.Copy != "" { // a signal that ends the process would leave it
		sig := interrupt.Catch()
		defer sig.Stop()
		ctx = sig.Starting
	}
	s, err := cs.Sessions.Open(ctx, session.ToJoin)
	if err != nil {
		return err
	}
	defer s.Client.Close()
	cs.applyModelSetting(&flags.Request, s)
	accepted, err := cs.sendRequest(s, flags)
	if err != nil {
		return err
	}
	if !cs.Console.Quiet {
		cs.Console.Say(cs.headerLines(s, accepted)[0])
	}
	if cs.Console.Output == "text" {
		return cs.Console.Print(accepted.RunID)
	}
	return cs.Console.PrintData(accepted)
}
