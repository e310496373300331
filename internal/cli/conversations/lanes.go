package conversations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Lanes makes the command lanes.
func (cs *Commands) Lanes() *cobra.Command {
	var before string
	c := &cobra.Command{
		Use: "lanes [CONVERSATION] [move|drop RUN]", Args: cobra.MaximumNArgs(laneArgs),
		Short: "Show or change which messages of conversations wait",
		Long: `Show the conversations with a run that is active or waits, or one of them. One run of a
conversation is active at a time; the next begins when it has ended. "move" puts a run that
waits at the end of the queue, or before another one; "drop" takes it out: it never runs.`,
		Example:     "  troupe lanes\n  troupe lanes plans move 01k9z3 --before 01k9z0\n  troupe lanes plans drop 01k9z3",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 && len(args) != laneArgs || before != "" && len(args) != laneArgs {
				return exit.UsageError("troupe lanes CONVERSATION move RUN, or drop RUN",
					"a change needs a conversation, move or drop, and a run")
			}
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				switch len(args) {
				case 0:
					return cs.printLanes(ctx, s)
				case 1:
					c, err := s.Conversations().Get(ctx, args[0])
					if err != nil {
						return err
					}
					return cs.printLane(c)
				}
				return cs.changeLane(ctx, s, args, before)
			})
		},
	}
	c.Flags().StringVar(&before, "before", "", "with move: the waiting run before which it goes (default the end)")
	return c
}

// laneArgs are the arguments of a change: the conversation, the action, the run.
const laneArgs = 3

func (cs *Commands) printLanes(ctx context.Context, s *session.Session) error {
	list, err := s.Conversations().List(ctx, client.ConversationsRequest{Busy: true})
	if err != nil {
		return err
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(list)
	}
	var rows [][]string
	for _, c := range list {
		for _, r := range c.Runs {
			rows = append(rows, []string{term.CleanLine(c.Conversation), term.CleanLine(r.ID), string(r.Status), term.Truncate(term.CleanLine(r.Title), titleColumns)})
		}
	}
	return cs.Console.PrintTable([]string{"CONVERSATION", "RUN", "STATUS", "TITLE"}, rows)
}

func (cs *Commands) printLane(c client.ConversationInfo) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(c)
	}
	return cs.printRuns(c.Runs)
}

func (cs *Commands) changeLane(ctx context.Context, s *session.Session, args []string, before string) error {
	r := client.LaneRequest{Conversation: args[0], Action: args[1]}
	var err error
	if r.RunID, err = s.FindRun(ctx, args[2]); err != nil {
		return err
	}
	if before != "" {
		if r.Before, err = s.FindRun(ctx, before); err != nil {
			return err
		}
	}
	c, err := s.Conversations().ChangeLane(ctx, r)
	if err != nil {
		return err
	}
	return cs.printLane(c)
}
