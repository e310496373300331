package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Result makes the command result.
func (cs *Commands) Result() *cobra.Command {
	var wait bool
	c := &cobra.Command{
		Use: "result RUN", Args: command.Exactly("RUN"),
		Short:       "Print the result of a run and exit with its exit code",
		Example:     "  troupe result 01k9z3\n  troupe result --wait -o json 01k9z3 | jq -r .result",
		Annotations: map[string]string{command.Formats: command.RunFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.AskOwners(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				return cs.printResult(ctx, s, run, wait)
			})
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until the run has ended")
	return c
}

func (cs *Commands) printResult(ctx context.Context, s *session.Session, run string, wait bool) error {
	info, err := s.Get(ctx, run)
	for err == nil && wait && info.State != client.RunFinished {
		if s.Node != nil {
			return s.NotRunningError(run)
		}
		if info, err = s.Wait(ctx, run); err == nil && info.State == client.RunParked {
			err = session.Pause(ctx, session.AskPause) // it continues once a person has answered
		}
	}
	if err != nil {
		return err
	}
	if info.Result == nil {
		return errors.New("the run has no result yet")
	}
	if info.State != client.RunFinished && info.State != client.RunParked {
		info.Result.Partial = true
		if cs.Console.Output == "text" {
			return unfinishedError(s, run, info.State)
		}
	}
	if err := cs.Console.PrintResult(*info.Result, s); err != nil {
		return err
	}
	return exit.WithCode(exit.ForReason(info.Result.Reason, false))
}

// unfinishedError says that a run has no final result, and how it gets one.
func unfinishedError(s *session.Session, run string, state client.RunState) error {
	f := &exit.Failure{Code: exit.Failed, Err: fmt.Errorf("run %s has not ended", run), Hint: s.Command("result --wait "+run) + " waits for it"}
	if state == client.RunInterrupted {
		f.Err, f.Hint = fmt.Errorf("run %s has not ended: no process works on it", run), s.Command("run --resume "+run)+" continues it"
	}
	return f
}
