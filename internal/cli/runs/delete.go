package runs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Delete makes the command delete.
func (cs *Commands) Delete() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "delete RUN", Aliases: []string{"rm"}, Args: command.Exactly("RUN"),
		Short: "Delete a finished run with its logs and stored results",
		Long: `Delete a finished run for good: its logs, its stored results and its row in the list.
A run that has not ended is refused: "troupe cancel RUN" ends it. On a terminal the
command asks for confirmation unless --yes is given; elsewhere --yes is required.`,
		Example:     "  troupe delete 01k9z3\n  troupe delete --yes 01k9z3 -o json",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			// Without a node one is needed: a run that is over may have logs to close.
			return cs.Sessions.VisitRun(session.ToRun, args[0], func(ctx context.Context, s *session.Session, run string) error {
				if err := cs.Console.Confirm(yes, "delete the run "+term.CleanLine(run), notUndone, "nothing was deleted"); err != nil {
					return err
				}
				d, err := s.Delete(ctx, run)
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(d)
				}
				if d.Already {
					return cs.Console.Print("run " + term.CleanLine(run) + " was deleted before")
				}
				return cs.Console.Print(fmt.Sprintf("run %s is deleted, %s", term.CleanLine(run), term.FormatCount(d.Agents, "agent")))
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// Prune makes the command prune.
func (cs *Commands) Prune() *cobra.Command {
	var yes, dry bool
	var older string
	c := &cobra.Command{
		Use: "prune --older-than D", Args: command.NoArguments,
		Short: "Delete runs that ended before a given age",
		Long: `Delete every run that ended longer ago than --older-than: 36h, 30d, 8w. Runs that are
working or waiting for a person stay.`,
		Example:     "  troupe prune --older-than 30d --dry-run\n  troupe prune --older-than 8w --yes -o json",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			age, err := parseAge("troupe prune", "--older-than", older)
			if err != nil {
				return err
			}
			if !dry {
				if err := cs.Console.Confirm(yes, "delete the runs that ended more than "+older+" ago", notUndone, "nothing was deleted"); err != nil {
					return err
				}
			}
			return cs.Sessions.Visit(session.ToRun, func(ctx context.Context, s *session.Session) error {
				p, err := s.Prune(ctx, client.PruneRequest{OlderThanMS: age.Milliseconds(), DryRun: dry})
				if err != nil {
					return err
				}
				return cs.printPruned(p, dry)
			})
		},
	}
	c.Flags().StringVar(&older, "older-than", "", "how long ago a run must have ended: 36h, 30d, 8w")
	c.Flags().BoolVar(&dry, "dry-run", false, "only list them")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (cs *Commands) printPruned(p client.Pruned, dry bool) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(p)
	}
	what := "deleted"
	if dry {
		what = "would be deleted"
	}
	lines := make([]string, 0, len(p.Runs)+len(p.Kept)+1)
	for _, run := range p.Runs {
		lines = append(lines, term.CleanLine(run)+"  "+what)
	}
	for _, k := range p.Kept {
		lines = append(lines, term.CleanLine(k.RunID)+"  kept: "+term.CleanLine(k.Why))
	}
	return cs.Console.Print(strings.Join(append(lines, fmt.Sprintf("%d runs %s", len(p.Runs), what)), "\n"))
}

// parseAge reads the age that a flag of a command gives: a duration, or days or weeks.
func parseAge(command, flag, text string) (time.Duration, error) {
	const day = 24 * time.Hour
	for unit, of := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			if n, err := strconv.ParseUint(number, 10, 64); err == nil && n < daysMax {
				return time.Duration(n) * of, nil
			}
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, exit.UsageError(command+" "+flag+" 30d", "%s %q: it must be like 36h, 30d or 8w", flag, text)
	}
	return d, nil
}

const daysMax = 10_000

// notUndone ends the question before a deletion.
const notUndone = ": it cannot be undone."
