package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Questions makes the command questions.
func (cs *Commands) Questions() *cobra.Command {
	return &cobra.Command{
		Use: "questions", Args: command.NoArguments,
		Short:       "List the questions that agents ask a person, the oldest first",
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
				if err := cs.sayInterrupted(ctx, s, list); err != nil {
					return err
				}
				rows := make([][]string, len(list))
				for i, q := range list {
					rows[i] = []string{term.CleanLine(q.RunID), term.CleanLine(q.Agent), term.CleanLine(q.Query), term.CleanLine(q.Reason), expiry(q), questionLine(q), journalLine(q)}
				}
				return cs.Console.PrintTable([]string{"RUN", "AGENT", "QUERY", "WHY", "EXPIRES", "QUESTION", "RUN'S TASK AND JOURNAL"}, rows)
			})
		},
	}
}

// questionLine is a question in one line, and how many people have approved what it is about.
func questionLine(q client.Question) string {
	text := term.QuestionLine(q.Question)
	if approvals := term.FormatApprovals(q.Approvals, q.ApprovedBy); approvals != "" {
		return "(" + approvals + ") " + text
	}
	return text
}

// journalLine is what the run is about, in one line: its task, and the journals of its root and of the agent that asks.
func journalLine(q client.Question) string {
	var parts []string
	for _, text := range []string{q.Goal, q.Journal, q.AgentJournal} {
		if text != "" {
			parts = append(parts, term.QuestionLine(text))
		}
	}
	return strings.Join(parts, " | ")
}

// sayInterrupted names a run that waits for a process, if there is one without a question: its agents may ask once it
// goes on.
func (cs *Commands) sayInterrupted(ctx context.Context, s *session.Session, list []client.Question) error {
	runs, err := s.ListRuns(ctx, client.ListRequest{State: client.RunInterrupted})
	if err != nil {
		return err
	}
	for _, r := range runs {
		if !slices.ContainsFunc(list, func(q client.Question) bool { return q.RunID == r.RunID }) {
			cs.Console.Say(s.DescribeInterrupted(r))
			break
		}
	}
	return nil
}

// expiry shows when a question expires, by itself or with its parked run.
func expiry(q client.Question) string {
	left := func(ms int64) string {
		d := max(0, time.Until(time.UnixMilli(ms)).Round(time.Second))
		if d < 48*time.Hour {
			return "in " + d.String()
		}
		return "in " + term.FormatAge(d)
	}
	switch {
	case q.DueMS != 0 && (q.RunDueMS == 0 || q.DueMS <= q.RunDueMS):
		return left(q.DueMS)
	case q.RunDueMS != 0:
		return left(q.RunDueMS) + ", with its run"
	}
	return "no end set" // its run works, or may wait for ever
}
