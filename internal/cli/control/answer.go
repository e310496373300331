package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Answer makes the command answer.
func (cs *Commands) Answer() *cobra.Command {
	var who string
	c := &cobra.Command{
		Use: "answer RUN QUERY approve|deny|skip|TEXT", Args: command.Exactly("RUN", "QUERY", "ANSWER"),
		Short:       "Answer an agent's question",
		Example:     "  troupe questions\n  troupe answer 01k9z3 2-0.1 approve\n  troupe answer 01k9z3 2-0.1 \"use the second one\"",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				if err := s.Answer(ctx, request.ParseAnswer(run, who, args[1], args[2])); err != nil {
					return err
				}
				return cs.printRecorded(ctx, s, run)
			})
		},
	}
	c.Flags().StringVar(&who, "agent", "", "agent that asks (default: the one that asked QUERY)")
	return c
}

// Questions makes the command questions.
func (cs *Commands) Questions() *cobra.Command {
	return &cobra.Command{
		Use: "questions", Args: command.NoArguments,
		Short:       "List the questions that agents ask a person",
		Example:     "  troupe questions\n  troupe questions -o json",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				list, err := s.Questions(ctx)
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(list)
				}
				rows := make([][]string, len(list))
				for i, q := range list {
					rows[i] = []string{term.CleanLine(q.RunID), term.CleanLine(q.Agent), term.CleanLine(q.Query), term.CleanLine(q.Reason), term.CleanLine(q.Question)}
				}
				return cs.Console.PrintTable([]string{"RUN", "AGENT", "QUERY", "WHY", "QUESTION"}, rows)
			})
		},
	}
}
