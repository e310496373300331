package run

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/schedules"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Start makes the command start.
func (cs *Commands) Start() *cobra.Command {
	c, _ := cs.startCommand()
	return c
}

// startCommand makes the command start, with its flags.
func (cs *Commands) startCommand() (*cobra.Command, *request.Flags) {
	flags := &request.Flags{}
	c := &cobra.Command{
		Use:         "start [PROMPT|-]",
		Short:       "Start a run on a running node and return at once",
		Example:     "  run=$(troupe start --dir . \"Investigate this repository\")\n  troupe result --wait $run",
		Annotations: map[string]string{command.Formats: command.RunFormats},
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.Complete(cs.Console, cs.Origins, c, args); err != nil {
				return err
			}
			return cs.withFork(flags, func() error { return cs.startRun(c.Context(), flags) })
		},
	}
	flags.AddFlags(c.Flags())
	return c, flags
}

// startRun starts the run on a node that outlives this process, and returns. A dry run needs no such node: without one, this
// process has a node until it ends.
func (cs *Commands) startRun(ctx context.Context, flags *request.Flags) (err error) {
	if flags.Copy != "" || flags.Request.DryRun { // a signal that ends the process would leave the copy, or the node open
		sig := interrupt.Catch()
		defer sig.Stop()
		ctx = sig.Starting
	}
	purpose := session.ToJoin
	if flags.Request.DryRun {
		purpose = session.ToRun
	}
	s, err := cs.Sessions.Open(ctx, purpose, flags.Roots()...)
	if err != nil && flags.IsScheduled() && exit.Explain(err).Code == exit.NoNode {
		return errNoSchedule
	}
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, s.Close()) }()
	if err := cs.Sessions.Recordings.RequireOwnNode(s); flags.Request.DryRun && err != nil {
		return err
	}
	cs.applyModelSetting(&flags.Request, s)
	accepted, err := cs.sendRequest(s, flags)
	if err != nil {
		return err
	}
	switch {
	case accepted.Preview != nil:
		return printPreview(cs.Console, accepted)
	case accepted.Schedule != "":
		return cs.printScheduled(accepted)
	}
	if !cs.Console.Quiet {
		cs.Console.Say(cs.headerLines(s, accepted)[0])
	}
	if cs.Console.Output == "text" {
		return cs.Console.Print(accepted.RunID)
	}
	return cs.Console.PrintData(accepted)
}

// errNoSchedule says that nothing would begin the runs of a schedule.
var errNoSchedule = &exit.Failure{Code: exit.NoNode, Err: errors.New("a schedule needs a node that stays, and none is running"), Hint: "start `troupe up`, and schedule the run again"}

// printScheduled prints the id of a schedule that was made.
func (cs *Commands) printScheduled(a client.RunAccepted) error {
	if !cs.Console.Quiet {
		when := "with each message"
		if a.Next != "" {
			when = schedules.LocalTime(a.Next)
		}
		cs.Console.Say(cs.Console.ErrStyle.Dim("next   ") + when)
		for _, n := range a.Notes {
			cs.Console.Say(cs.Console.ErrStyle.Dim("note   ") + term.CleanLine(n))
		}
	}
	if cs.Console.Output == "text" {
		return cs.Console.Print(a.Schedule)
	}
	return cs.Console.PrintData(a)
}
