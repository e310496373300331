package cli

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

func (a *app) deleteCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "delete RUN", Aliases: []string{"rm"}, Args: exactly("RUN"),
		Short: "Remove a run that has ended: its logs, its kept results, its row",
		Long: `Remove a run that has ended, for good: what its agents said and did, the results that
were kept whole, and its row in the list. A run that is at work is not removed:
"troupe cancel RUN" ends it first. On a terminal you are asked, unless --yes is given;
elsewhere --yes is needed.`,
		Example:     "  troupe delete 01k9z3\n  troupe delete --yes 01k9z3 -o json",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			run := strings.ToLower(args[0])
			if err := a.confirm(yes, "delete the run "+run); err != nil {
				return err
			}
			// Without a node one is needed: a run that is over may have logs to close.
			return a.visit(toRun, func(ctx context.Context, s *seat) error {
				d, err := s.Delete(ctx, run)
				if err != nil {
					return err
				}
				if a.output != "table" {
					return a.printData(d)
				}
				if d.Already {
					return a.print("run " + term.Line(run) + " was deleted before")
				}
				return a.print(fmt.Sprintf("run %s is deleted, %d agents", term.Line(run), d.Agents))
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (a *app) pruneCommand() *cobra.Command {
	var yes, dry bool
	var older string
	c := &cobra.Command{
		Use: "prune --older-than D", Args: none,
		Short: "Remove the runs that ended long ago",
		Long: `Remove every run that ended longer ago than --older-than: 36h, 30d, 8w. Runs that are
at work stay, and so do those that wait for a person.`,
		Example:     "  troupe prune --older-than 30d --dry-run\n  troupe prune --older-than 8w --yes -o json",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(*cobra.Command, []string) error {
			age, err := ago(older)
			if err != nil {
				return err
			}
			if !dry {
				if err := a.confirm(yes, "delete the runs that ended more than "+older+" ago"); err != nil {
					return err
				}
			}
			return a.visit(toRun, func(ctx context.Context, s *seat) error {
				p, err := s.Prune(ctx, client.PruneRequest{OlderThanMS: age.Milliseconds(), DryRun: dry})
				if err != nil {
					return err
				}
				return a.sayPruned(p, dry)
			})
		},
	}
	c.Flags().StringVar(&older, "older-than", "", "how long ago a run must have ended: 36h, 30d, 8w")
	c.Flags().BoolVar(&dry, "dry-run", false, "only name them")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (a *app) sayPruned(p client.Pruned, dry bool) error {
	if a.output != "table" {
		return a.printData(p)
	}
	what := "deleted"
	if dry {
		what = "would be deleted"
	}
	lines := make([]string, 0, len(p.Runs)+len(p.Kept)+1)
	for _, run := range p.Runs {
		lines = append(lines, term.Line(run)+"  "+what)
	}
	for _, k := range p.Kept {
		lines = append(lines, term.Line(k.RunID)+"  kept: "+term.Line(k.Why))
	}
	return a.print(strings.Join(append(lines, fmt.Sprintf("%d runs %s", len(p.Runs), what)), "\n"))
}

// ago reads how long ago something must be: a duration, or days or weeks.
func ago(text string) (time.Duration, error) {
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
		return 0, usage("troupe prune --older-than 30d", "--older-than %q: it must be like 36h, 30d or 8w", text)
	}
	return d, nil
}

const daysMax = 10_000

// confirm asks a person before something that cannot be undone.
func (a *app) confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !term.IsTTY(a.in) {
		return usage("--yes says that it is meant", "to %s it must be confirmed", what)
	}
	_, _ = fmt.Fprint(a.err, a.errors.Yellow("? ")+what+": it cannot be undone. y/N: ") // an answer on the same line
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil && word == "" || word != "y" && word != "yes" {
		return usage("nothing was deleted", "not confirmed")
	}
	return nil
}
