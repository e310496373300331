// Package conversations holds the commands on conversations and their lanes.
package conversations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Commands show, change and delete conversations.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

const titleColumns = 50

// Conversations makes the command conversations.
func (cs *Commands) Conversations() *cobra.Command {
	c := command.Group("conversations", "List, show and delete conversations",
		`A conversation goes on over many runs: "troupe run --conversation ID TEXT" gives a run the
history and the journal of the run before it. One of its runs is active at a time.`,
		"  troupe conversations list\n  troupe conversations show plans\n  troupe conversations delete plans")
	c.Aliases = []string{"conversation"}
	c.AddCommand(cs.list(), cs.show(), cs.remove())
	return c
}

func (cs *Commands) list() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short:       "List the conversations, the most recent first",
		Example:     "  troupe conversations list\n  troupe conversations list -o json | jq -r '.[].conversation_id'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				list, err := s.Conversations().List(ctx, client.ConversationsRequest{Limit: limit})
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(list)
				}
				rows := make([][]string, len(list))
				for i, c := range list {
					rows[i] = []string{term.CleanLine(c.Conversation), stateOf(c), fmt.Sprint(c.Count), fmt.Sprint(c.Waiting), console.Age(c.Changed)}
				}
				return cs.Console.PrintTable([]string{"CONVERSATION", "STATE", "RUNS", "WAITING", "AGE"}, rows)
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 0, "how many to list; 0: all")
	return c
}

func stateOf(c client.ConversationInfo) string {
	switch {
	case c.Active != "":
		return "active"
	case c.Waiting > 0:
		return "waiting"
	}
	return "idle"
}

func (cs *Commands) show() *cobra.Command {
	return &cobra.Command{
		Use: "show CONVERSATION", Args: command.Exactly("CONVERSATION"),
		Short:       "Show the runs of a conversation and the journal with which it goes on",
		Example:     "  troupe conversations show plans",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				c, err := s.Conversations().Get(ctx, args[0])
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(c)
				}
				if err := cs.printRuns(c.Runs); err != nil {
					return err
				}
				if c.HandedTo != "" {
					if err := cs.Console.Print("\nhanded off to " + term.CleanLine(c.HandedTo)); err != nil {
						return err
					}
				}
				if c.Journal == "" {
					return nil
				}
				return cs.Console.Print("\njournal\n" + cleanLines(c.Journal))
			})
		},
	}
}

// cleanLines removes what would control a terminal from a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = "  " + term.CleanLine(l)
	}
	return strings.Join(lines, "\n")
}

func (cs *Commands) printRuns(runs []client.ConversationRun) error {
	rows := make([][]string, len(runs))
	for i, r := range runs {
		at := max(r.QueuedMS, r.BegunMS, r.EndedMS)
		reason := "-"
		if r.Reason != "" {
			reason = term.FormatReason(r.Reason)
		}
		rows[i] = []string{term.CleanLine(r.ID), string(r.Status), reason, console.Age(time.UnixMilli(at).UTC().Format(time.RFC3339)),
			term.Truncate(term.CleanLine(r.Title), titleColumns)}
	}
	return cs.Console.PrintTable([]string{"RUN", "STATUS", "STOP", "AGE", "TITLE"}, rows)
}

func (cs *Commands) remove() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "delete CONVERSATION", Aliases: []string{"rm"}, Args: command.Exactly("CONVERSATION"),
		Short: "Delete a conversation with all its runs",
		Long: `Delete a conversation for good: the logs and results of all its runs. One with a run that
is active or waits is refused: "troupe cancel RUN" ends it. On a terminal the command
asks for confirmation unless --yes is given; elsewhere --yes is required.`,
		Example:     "  troupe conversations delete --yes plans",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.Visit(session.ToRun, func(ctx context.Context, s *session.Session) error {
				if err := cs.Console.Confirm(yes, "delete the conversation "+term.CleanLine(args[0])+" and all its runs", ": it cannot be undone.", "nothing was deleted"); err != nil {
					return err
				}
				d, err := s.Conversations().Delete(ctx, args[0])
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(d)
				}
				return cs.Console.Print(fmt.Sprintf("conversation %s is deleted, %d runs", term.CleanLine(d.Conversation), len(d.Runs)))
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}
