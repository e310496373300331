package run

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/follow"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Follow makes the command follow.
func (cs *Commands) Follow() *cobra.Command {
	return &cobra.Command{
		Use: "follow RUN", Args: command.Exactly("RUN"),
		Short:       "Follow a run and print its result; Ctrl-C only detaches",
		Example:     "  troupe follow 01k9z3\n  troupe follow last -o stream-json",
		Annotations: map[string]string{command.Formats: command.RunFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				return cs.observe(ctx, s, run)
			})
		},
	}
}

// observe shows a run without having anything to say about it.
func (cs *Commands) observe(ctx context.Context, s *session.Session, run string) error {
	info, err := s.Get(ctx, run)
	if err != nil {
		return err
	}
	if info.State != client.RunFinished && s.Node != nil {
		return s.NotRunningError(run)
	}
	f := follow.NewObserver(cs.Console, run)
	end, err := f.Watch(s)
	if errors.Is(err, context.Canceled) && !s.IsGone(err) {
		f.Settle()
		cs.Console.Say("detached; the run continues: " + s.Command("follow "+run))
		return nil
	}
	if err != nil {
		return err
	}
	f.Settle()
	f.PrintAnswerHint(s, end)
	if err := f.PrintResult(s, end); err != nil {
		return err
	}
	return exit.WithCode(exit.ForReason(end.Result.Reason, false))
}
