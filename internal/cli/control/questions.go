package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/term"
)

// Questions makes the command questions.
func (cs *Commands) Questions() *cobra.Command {
	return &cobra.Command{
		Use: "questions [RUN]", Args: command.Between(0, 1, "RUN"),
		Short: "List the questions that agents ask a person, the oldest first",
		Long: `List the questions that agents ask a person, the oldest first: those of all runs, or of one.
On a terminal each question stands below its row, whole; elsewhere its beginning stands in its
row, and -o json has the whole.`,
		Example:     "  troupe questions\n  troupe questions last\n  troupe questions -o json",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				list, err := listQuestions(ctx, s, args)
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(list)
				}
				if err := cs.sayInterrupted(ctx, s, list); err != nil {
					return err
				}
				return cs.Console.PrintLines(questionsPage(cs.Console.NewPage(), list))
			})
		},
	}
}

// listQuestions lists the questions of the run that args name, or of all.
func listQuestions(ctx context.Context, s *session.Session, args []string) ([]client.Question, error) {
	list, err := s.Questions(ctx)
	if err != nil || len(args) == 0 {
		return list, err
	}
	run, err := s.FindRun(ctx, args[0])
	if err != nil {
		return nil, err
	}
	if _, err := s.State(ctx, run); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(q client.Question) bool { return q.RunID != run }), nil
}

// questionIndent is how far a question stands in below its row.
const questionIndent = "    "

// pipedTextMax is how many bytes of a text stand in a row where no terminal shows it: -o json has the whole.
const pipedTextMax = 400

// questionsPage draws questions as a table. On a terminal, whose rows have no room for it, each question stands below its
// row, and the whole of it can be read.
func questionsPage(p *console.Page, list []client.Question) []string {
	head := []string{"RUN", "AGENT", "QUERY", "WHY", "EXPIRES"}
	rows := make([][]string, len(list))
	for i, q := range list {
		rows[i] = []string{term.CleanLine(q.RunID), term.CleanLine(q.Agent), term.CleanLine(q.Query), whyAsked(q), expiry(q)}
	}
	if p.Width == console.Unbounded {
		for i, q := range list {
			rows[i] = append(rows[i], clip.Text(questionLine(q), pipedTextMax), clip.Text(journalLine(q), pipedTextMax))
		}
		p.AddTable(console.Left(append(head, "QUESTION", "RUN'S TASK AND JOURNAL")...), rows)
		return p.Lines
	}
	p.AddTable(console.Left(head...), rows)
	lines := p.Lines[:1:1]
	for i, q := range list {
		lines = append(lines, p.Lines[i+1])
		for _, line := range term.Wrap(term.CleanText(approvedBefore(q)+strings.TrimSpace(q.Question)), p.Width-len(questionIndent)) {
			lines = append(lines, questionIndent+line)
		}
		if about := journalLine(q); about != "" {
			for _, line := range term.Wrap("task: "+about, p.Width-len(questionIndent)) {
				lines = append(lines, questionIndent+p.Style.Dim(line))
			}
		}
	}
	return lines
}

// whyAsked says why a question was asked: a program reads the reason, and for a person an approval is one.
func whyAsked(q client.Question) string {
	if q.Reason == string(spec.NeedsHuman) && q.Digest != "" {
		return "approval"
	}
	return term.CleanLine(q.Reason)
}

// questionLine is a question in one line, and how many people have approved what it is about.
func questionLine(q client.Question) string {
	return approvedBefore(q) + term.QuestionLine(q.Question)
}

// approvedBefore says before a question how many people have approved what it is about; "" if one decides.
func approvedBefore(q client.Question) string {
	if approvals := term.FormatApprovals(q.Approvals, q.ApprovedBy); approvals != "" {
		return "(" + approvals + ") "
	}
	return ""
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
