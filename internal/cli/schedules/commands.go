// Package schedules holds the commands on schedules, which begin runs at times or with messages.
package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Commands show and delete schedules.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

const titleColumns = 40

// Schedules makes the command schedules.
func (cs *Commands) Schedules() *cobra.Command {
	c := command.Group("schedules", "List, show and delete schedules",
		`A schedule begins runs at times (troupe run --at, --every) or with messages on a NATS subject
(--on). A node that stays keeps it: troupe up or troupe-node.`,
		"  troupe run --every '0 9 * * 1-5' --conversation daily \"Which issues are new?\"\n  troupe schedules list\n  troupe schedules delete 01k9z3")
	c.Aliases = []string{"schedule"}
	c.AddCommand(cs.list(), cs.show(), cs.remove())
	return c
}

func (cs *Commands) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short:       "List the schedules, the one that is due next first",
		Example:     "  troupe schedules list\n  troupe schedules list -o json | jq -r '.[].schedule_id'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				list, err := (client.Schedules{Client: s.Client}).List(ctx)
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(list)
				}
				rows := make([][]string, len(list))
				for i, s := range list {
					rows[i] = []string{term.CleanLine(s.ID), RuleText(s), LocalTime(s.Next), fmt.Sprint(s.Fired), fmt.Sprint(s.MissedCount), term.Truncate(term.CleanLine(s.Title), titleColumns)}
				}
				return cs.Console.PrintTable([]string{"SCHEDULE", "RULE", "NEXT", "RUNS", "MISSED", "TITLE"}, rows)
			})
		},
	}
}

// RuleText says when the runs of a schedule begin.
func RuleText(s client.ScheduleInfo) string {
	switch {
	case s.On != "":
		return "on troupe.trigger." + term.CleanLine(s.On)
	case s.Every != "" && s.Zone != "":
		return "every " + term.CleanLine(s.Every) + " " + term.CleanLine(s.Zone)
	case s.Every != "":
		return "every " + term.CleanLine(s.Every)
	}
	return "once"
}

// LocalTime is a time of a schedule in the zone of this machine; "-": none.
func LocalTime(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

func (cs *Commands) show() *cobra.Command {
	return &cobra.Command{
		Use: "show SCHEDULE", Args: command.Exactly("SCHEDULE"),
		Short:       "Show a schedule: its rule and task, its next and last run, and what it missed",
		Example:     "  troupe schedules show 01k9z3\n  troupe schedules show 01k9z3 -o json | jq .request",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				info, err := (client.Schedules{Client: s.Client}).Get(ctx, args[0])
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(info)
				}
				return cs.printSchedule(info)
			})
		},
	}
}

func (cs *Commands) printSchedule(s client.ScheduleInfo) error {
	rows := [][]string{{"schedule", term.CleanLine(s.ID)}, {"rule", RuleText(s)}, {"next", LocalTime(s.Next)}, {"created", LocalTime(s.Created)}, {"prompt", term.CleanLine(s.Title)}}
	request := client.RunRequest{}
	if s.Request != nil {
		request = *s.Request
	}
	for _, r := range [][2]string{{"dir", request.Dir}, {"model", term.ModelName(request.Model)}, {"agent", request.Agent}, {"conversation", s.Conversation}, {"missed", s.Missed}, {"overlap", s.Overlap}} {
		if r[1] != "" {
			rows = append(rows, []string{r[0], term.CleanLine(r[1])})
		}
	}
	runs := fmt.Sprintf("%s begun, %s missed, %d refused", console.CountOf(s.Fired, "run"), console.CountOf(s.MissedCount, "due time"), s.Refused)
	rows = append(rows, []string{"so far", runs})
	if s.LastRun != "" {
		rows = append(rows, []string{"last run", term.CleanLine(s.LastRun) + ", due " + LocalTime(s.LastDue)})
	}
	if s.Error != "" {
		rows = append(rows, []string{"last refusal", term.CleanLine(s.Error)})
	}
	return cs.Console.PrintTable([]string{"", ""}, rows)
}

func (cs *Commands) remove() *cobra.Command {
	return &cobra.Command{
		Use: "delete SCHEDULE", Aliases: []string{"rm"}, Args: command.Exactly("SCHEDULE"),
		Short:       "Delete a schedule: it begins no more runs",
		Long:        "Delete a schedule. Its runs stay, and one that works goes on: `troupe cancel RUN` ends it.",
		Example:     "  troupe schedules delete 01k9z3",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.Visit(session.ToRun, func(ctx context.Context, s *session.Session) error {
				if err := (client.Schedules{Client: s.Client}).Delete(ctx, args[0]); err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(map[string]string{"schedule_id": args[0]})
				}
				return cs.Console.Print("deleted " + term.CleanLine(args[0]))
			})
		},
	}
}
