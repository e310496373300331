package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// List makes the command list.
func (cs *Commands) List() *cobra.Command {
	var flags listFlags
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short: "List the runs, newest first",
		Long: `List the runs, newest first. A table has 50 rows unless --limit says otherwise; other
formats have all runs. The states are live, queued, parked (it waits for a person),
finished, and interrupted: no process is there to continue it, and
"troupe run --resume RUN" does.`,
		Example:     "  troupe list\n  troupe list --state interrupted\n  troupe list --since 2d -o json | jq -r '.[].run_id'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := flags.request(cs.Console.Output == "table" && !c.Flags().Changed("limit"))
			if err != nil {
				return err
			}
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				list, err := s.ListRuns(ctx, r)
				if err != nil {
					return err
				}
				if cs.Console.Output == "table" && r.Limit > 0 && len(list) == r.Limit {
					cs.Console.Say(fmt.Sprintf("the newest %d; --limit 0 lists all", r.Limit))
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(list)
				}
				if i := slices.IndexFunc(list, func(r client.RunInfo) bool { return r.State == client.RunInterrupted }); i >= 0 {
					cs.Console.Say(s.DescribeInterrupted(list[i]))
				}
				rows := make([][]string, len(list))
				for i, r := range list {
					rows[i] = runRow(r)
				}
				head := []string{"RUN", "STATE", "STOP", "TURNS", "TOKENS", "COST", "AGE", "TITLE"}
				if width, _ := term.Size(cs.Console.Out); term.IsTTY(cs.Console.Out) && width < wideColumns {
					shortenRuns(rows)
					for i := range rows { // turns and tokens matter least
						rows[i] = slices.Delete(rows[i], 3, 5)
					}
					head = slices.Delete(head, 3, 5)
				}
				return cs.Console.PrintTable(head, rows)
			})
		},
	}
	c.Flags().IntVar(&flags.limit, "limit", 0, "how many runs to list; 0: all (a table: 50)")
	c.Flags().StringVar(&flags.state, "state", "", "only runs in this state: live, queued, parked, finished, interrupted")
	c.Flags().StringVar(&flags.since, "since", "", "only runs that began at most this long ago: 36h, 2d, 8w")
	return c
}

type listFlags struct {
	limit        int
	state, since string
}

// request returns what to ask a node for.
func (f listFlags) request(short bool) (client.ListRequest, error) {
	r := client.ListRequest{Limit: f.limit, State: client.RunState(f.state)}
	if short {
		r.Limit = tableRows
	}
	if f.since == "" {
		return r, nil
	}
	age, err := parseAge("troupe list", "--since", f.since)
	if err != nil {
		return r, err
	}
	r.Since = time.Now().Add(-age).UTC().Format(time.RFC3339)
	return r, nil
}

const (
	tableRows    = 50 // of a table without --limit
	titleColumns = 50
	wideColumns  = 110 // of a terminal in which a row with its title has room
	// runPrefixMin is how much of a run's id a narrow table shows at least: the time of a run to 1 ms, and a part that
	// differs also between runs of the same ms. Commands take the beginning of an id.
	runPrefixMin = 13
)

// shortenRuns shows as much of the ids of runs, in the first column, as tells them apart.
func shortenRuns(rows [][]string) {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row[0]
	}
	slices.Sort(ids)
	length := runPrefixMin
	for i := 1; i < len(ids); i++ {
		same := 0
		for same < min(len(ids[i-1]), len(ids[i])) && ids[i-1][same] == ids[i][same] {
			same++
		}
		length = max(length, same+1)
	}
	for _, row := range rows {
		row[0] = row[0][:min(len(row[0]), length)]
	}
}

func runRow(r client.RunInfo) []string {
	row := []string{term.CleanLine(r.RunID), stateText(r), "-", "-", "-", "-", console.Age(r.Started), term.Truncate(forkMark(r)+term.CleanLine(r.Title), titleColumns)}
	spend := r.Spend
	if d := r.Result; d != nil {
		row[2] = term.FormatReason(d.Reason)
		row[3] = fmt.Sprint(d.Turns)
		spend = &event.Spend{CostUSD: d.CostUSD, CostKnown: d.CostKnown, CostEstimated: d.CostEstimated, Budget: d.Budget}
	}
	if spend != nil {
		row[4], row[5] = spendText(*spend)
	}
	return row
}

// forkMark precedes the title of a fork, which is often that of its original.
func forkMark(r client.RunInfo) string {
	if r.Fork == "" {
		return ""
	}
	return "fork: "
}

// spendText shows what a run has spent of its limits.
func spendText(s event.Spend) (tokens, money string) {
	tokens = term.FormatTokens(s.Budget.Used) + "/" + term.FormatTokens(s.Budget.Limit)
	if s.CostKnown {
		money = term.FormatMoney(s.CostUSD, s.Budget.LimitUSD, s.Budget.ReservedUSD, s.CostEstimated)
	}
	return tokens, cmp.Or(money, console.CostText(s.CostUSD, s.CostKnown, s.CostEstimated))
}

// stateText is the state of a run, with its place in the queue.
func stateText(r client.RunInfo) string {
	if r.Position > 0 {
		return fmt.Sprintf("%s %d", term.CleanLine(string(r.State)), r.Position)
	}
	return term.CleanLine(string(r.State))
}
