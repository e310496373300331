package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// List makes the command list.
func (cs *Commands) List() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short:       "List the runs, newest first",
		Example:     "  troupe list\n  troupe list -o json | jq -r '.[] | select(.state != \"finished\") | .run_id'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				list, err := s.List(ctx)
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(list)
				}
				rows := make([][]string, len(list))
				for i, r := range list {
					rows[i] = runRow(r)
				}
				head := []string{"RUN", "STATE", "STOP", "TURNS", "TOKENS", "COST", "AGE", "TITLE"}
				if width, _ := term.Size(cs.Console.Out); term.IsTTY(cs.Console.Out) && width < wideColumns {
					for i := range rows { // the subject of a run matters more than its cost
						rows[i] = slices.Delete(rows[i], 3, 6)
					}
					head = slices.Delete(head, 3, 6)
				}
				return cs.Console.PrintTable(head, rows)
			})
		},
	}
}

const (
	titleColumns = 50
	wideColumns  = 110 // of a terminal in which a row with its title has room
)

func runRow(r client.RunInfo) []string {
	row := []string{term.CleanLine(r.RunID), stateText(r), "-", "-", "-", "-", console.Age(r.Started), term.Truncate(term.CleanLine(r.Title), titleColumns)}
	if d := r.Result; d != nil {
		row[2] = term.CleanLine(string(d.Reason))
		row[3] = fmt.Sprint(d.Turns)
		row[4] = term.FormatTokens(d.Budget.Used) + "/" + term.FormatTokens(d.Budget.Limit)
		row[5] = console.CostText(d.CostUSD, d.CostKnown)
	}
	return row
}

// stateText is the state of a run, with its place in the queue.
func stateText(r client.RunInfo) string {
	if r.Position > 0 {
		return fmt.Sprintf("%s %d", term.CleanLine(r.State), r.Position)
	}
	return term.CleanLine(r.State)
}
