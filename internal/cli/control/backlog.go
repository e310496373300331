package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Backlog makes the command backlog.
func (cs *Commands) Backlog() *cobra.Command {
	var text string
	c := &cobra.Command{
		Use: "backlog RUN [show TASK | post TITLE... | drop TASK]", Args: cobra.MinimumNArgs(1),
		Short: "Show the tasks that agents share, and add or drop one",
		Long: `Show the backlog that the agents of a run share: each task, whether it is open, claimed or
done, and by whom. With show, print one task with its text and its result.

With post, add a task to the backlog of a run at work: the next agent that claims a task
can get it. With drop, remove one that is not done; an agent that has claimed it learns
that when it reports. docs/backlog.md explains the tools of agents.`,
		Example: `  troupe backlog last
  troupe backlog last show t3
  troupe backlog last post Check the links of the README
  troupe backlog last post 'Fix the parser' --text @notes.md
  troupe backlog last drop t3`,
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := cs.backlogRequest(args[1:], text)
			if err != nil {
				return err
			}
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				r.RunID = run
				b, err := client.AskBacklog(ctx, s.Client, r)
				if err != nil {
					return err
				}
				return cs.showBacklog(s, r, b)
			})
		},
	}
	c.Flags().StringVar(&text, "text", "", "text of a new task: TEXT, or @FILE")
	return c
}

const backlogUsage = "show TASK, post TITLE or drop TASK may follow the run"

// backlogRequest makes the request of the words after the run.
func (cs *Commands) backlogRequest(words []string, text string) (r client.BacklogRequest, err error) {
	if len(words) == 0 {
		words = []string{""}
	}
	switch rest := words[1:]; {
	case words[0] == "" && len(rest) == 0:
	case words[0] == "show" && len(rest) == 1:
		r.Task = rest[0]
	case words[0] == "post" && len(rest) > 0:
		if r.Text, err = request.ReadText(text, "--text TEXT, or --text @FILE"); err != nil {
			return r, err
		}
		r.Title = strings.Join(rest, " ")
	case words[0] == "drop" && len(rest) == 1:
		r.Drop = rest[0]
	default:
		return r, exit.UsageError(backlogUsage, "%q is not what backlog can do", strings.Join(words, " "))
	}
	if text != "" && r.Title == "" {
		return r, exit.UsageError("troupe backlog RUN post TITLE --text TEXT",
			"--text is that of a new task, and none is posted")
	}
	if r.Changes() {
		r.By = request.UserName()
		if cs.Console.Getenv("TROUPE_CALL") != "" || cs.Console.Getenv("TROUPE_HOOK") != "" {
			return r, exit.UsageError("an agent has the tools backlog_post and backlog_return",
				"a tool or a hook of a run cannot change a backlog in a person's name")
		}
	}
	return r, nil
}

// showBacklog prints the tasks of a run, one of them, or what was changed.
func (cs *Commands) showBacklog(s *session.Session, r client.BacklogRequest, b client.Backlog) error {
	if r.Changes() && s.Node != nil && !cs.Console.Quiet {
		cs.Console.Say("recorded; no node is running: " + s.Command("run --resume "+r.RunID) + " continues the run")
	}
	switch {
	case cs.Console.Output != "table":
		return cs.Console.PrintData(b)
	case b.Posted != "":
		return cs.Console.PrintLines([]string{b.Posted})
	case r.Drop != "":
		return nil
	case r.Task != "":
		return cs.showTask(b.Tasks[0])
	}
	var rows [][]string
	for _, t := range b.Tasks {
		rows = append(rows, []string{t.Task, t.State, agentOf(t), untilOf(t), posterOf(t), term.CleanLine(t.Title)})
	}
	return cs.Console.PrintTable([]string{"TASK", "STATE", "AGENT", "UNTIL", "POSTED BY", "TITLE"}, rows)
}

// showTask prints one task in full.
func (cs *Commands) showTask(t event.BacklogTask) error {
	p := cs.Console.NewPage()
	pairs := [][2]string{{"task", t.Task}, {"title", term.CleanLine(t.Title)}, {"state", t.State}, {"posted by", posterOf(t)}}
	if who := agentOf(t); who != "" {
		pairs = append(pairs, [2]string{"agent", who})
	}
	if until := untilOf(t); until != "" {
		pairs = append(pairs, [2]string{"until", until})
	}
	p.AddPairs(pairs...)
	for _, part := range [][2]string{{"text", t.Text}, {"result", t.Result}} {
		if part[1] != "" {
			p.AddHeading(part[0])
			p.Lines = append(p.Lines, strings.Split(term.CleanText(part[1]), "\n")...)
		}
	}
	return cs.Console.PrintLines(p.Lines)
}

// agentOf names the agent that has claimed a task, or has done it.
func agentOf(t event.BacklogTask) string {
	if t.Agent == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s)", t.Agent, term.CleanLine(t.Name))
}

// untilOf is when the lease of a claim ends.
func untilOf(t event.BacklogTask) string {
	if t.UntilMS == 0 || t.State != "claimed" {
		return ""
	}
	return time.UnixMilli(t.UntilMS).Format("15:04:05")
}

func posterOf(t event.BacklogTask) string {
	if t.PostedBy != "" {
		return string(t.PostedBy)
	}
	return term.CleanLine(t.By)
}
