package cli

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

func (a *controlCommands) budgetCommand() *cobra.Command {
	var l budgetFlags
	c := &cobra.Command{
		Use:   "budget RUN [set|freeze]",
		Short: "Show what a run may spend and has spent; change it while it lives",
		Long: `Show the limits of a run, what was used of them, what is reserved for model calls
under way and kept back for closing turns, for the run and for each agent.

set changes the limits that are named; the others stay, and a freeze is lifted.
freeze leaves the limits and grants nothing but closing turns: every agent sums up
what it found and ends. Both need a run that is not over.`,
		Example: `  troupe budget 01k9z3
  troupe budget 01k9z3 -o json | jq .budget.used.tokens
  troupe budget 01k9z3 set --max-tokens 200000 --max-budget-usd 2
  troupe budget 01k9z3 freeze`,
		Annotations: map[string]string{formats: dataFormats},
		Args:        budgetArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := l.fit(c, args); err != nil {
				return err
			}
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error {
				if len(args) == 1 {
					return a.budget(ctx, s, args[0])
				}
				r := client.BudgetRequest{RunID: args[0], Freeze: args[1] == "freeze", Patch: args[1] == "set", Limits: l.limits(c)}
				return a.changeBudget(ctx, s, r)
			})
		},
	}
	l.add(c)
	return c
}

// budgetFlags are the limits that set can change.
type budgetFlags struct {
	tokens, calls int64
	usd           float64
}

func (l *budgetFlags) add(c *cobra.Command) {
	c.Flags().Int64Var(&l.tokens, "max-tokens", 0, "with set: most tokens of the whole tree")
	c.Flags().Float64Var(&l.usd, "max-budget-usd", 0, "with set: most US dollars of the whole tree")
	c.Flags().Int64Var(&l.calls, "max-tool-calls", 0, "with set: most tool calls of the whole tree")
}

const nanoUSD = 1e9

// limits returns the limits that were given as flags: settings apply to new runs only.
func (l *budgetFlags) limits(c *cobra.Command) (given spec.RunLimits) {
	if c.Flags().Changed("max-tokens") {
		given.Tokens = l.tokens
	}
	if c.Flags().Changed("max-budget-usd") {
		given.Nano = int64(math.Round(l.usd * nanoUSD))
	}
	if c.Flags().Changed("max-tool-calls") {
		given.Calls = l.calls
	}
	return given
}

// fit checks that the flags match the arguments.
func (l *budgetFlags) fit(c *cobra.Command, args []string) error {
	given := c.Flags().Changed("max-tokens") || c.Flags().Changed("max-budget-usd") || c.Flags().Changed("max-tool-calls")
	hint := "troupe budget " + args[0] + " set --max-tokens N"
	switch set := len(args) == 2 && args[1] == "set"; {
	case set && !given:
		return usage(hint, "set names no limit")
	case !set && given:
		return usage(hint, "a limit is changed with set")
	case set && !l.sane(c):
		return usage("troupe budget "+args[0]+" freeze stops all but closing turns", "a limit must be more than 0")
	}
	return nil
}

const usdMost = 1e6

// sane reports whether every given limit is valid.
func (l *budgetFlags) sane(c *cobra.Command) bool {
	return (!c.Flags().Changed("max-tokens") || l.tokens > 0) && (!c.Flags().Changed("max-tool-calls") || l.calls > 0) &&
		(!c.Flags().Changed("max-budget-usd") || l.usd > 0 && l.usd <= usdMost)
}

func budgetArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 1, len(args) == 2 && (args[1] == "set" || args[1] == "freeze"):
		return nil
	case len(args) == 2:
		return usage("use set or freeze, or neither", "budget can set and freeze, not %q", args[1])
	}
	return exactly("RUN")(c, args)
}

// budgetDoc is what budget prints as JSON.
type budgetDoc struct {
	Run    string             `json:"run_id"`
	State  string             `json:"state"`
	Budget client.BudgetInfo  `json:"budget"`
	Limits spec.RunLimits     `json:"limits"`
	Agents []client.AgentInfo `json:"agents"`
}

func (a *controlCommands) budget(ctx context.Context, s *seat, run string) error {
	info, err := s.Describe(ctx, run)
	if err != nil {
		return err
	}
	if info.Description == nil {
		return fmt.Errorf("the log of %s is gone, or not yet there", run)
	}
	d := info.Description
	if a.console.output != "table" {
		return a.console.printData(budgetDoc{run, info.State, d.Budget, d.Limits, d.Agents})
	}
	p := a.console.page()
	b := d.Budget
	known := d.Model.Price.Known
	rows := [][]string{
		amounts("limit", limitAmounts(b.Limit, known)),
		amounts("used", spent(b.Used, known)), amounts("reserved", spent(b.Reserved, known)), amounts("kept", spent(b.Kept, known)),
		amounts("charged_unknown", spent(b.Unknown, known)), amounts("overrun", spent(b.Overrun, known)),
	}
	p.table(slices.Concat(left("RUN"), right("TOKENS", "MONEY", "CALLS")), rows)
	if b.Frozen {
		p.line(a.console.style.Yellow("frozen: only closing turns are granted; budget set lifts it"))
	}
	if b.Waiting > 0 {
		p.line(fmt.Sprintf("%d agents wait for others to settle", b.Waiting))
	}
	p.lines = append(p.lines, "")
	rows = nil
	for _, m := range d.Agents {
		own := "the run's"
		if m.Limit.Tokens > 0 {
			own = term.Tokens(m.Limit.Tokens)
		}
		rows = append(rows, []string{term.Line(string(m.ID)), term.Line(m.Name), own, term.Tokens(m.Used.Tokens), term.Tokens(m.Reserved.Tokens),
			term.Tokens(m.Kept.Tokens), money(m.Used.Nano, known), fmt.Sprint(m.Used.Calls)})
	}
	p.table(slices.Concat(left("ID", "AGENT"), right("LIMIT", "USED", "RESERVED", "KEPT", "MONEY", "CALLS")), rows)
	return a.console.lines(p.lines)
}

func amounts(name string, cells []string) []string { return append([]string{name}, cells...) }

func spent(v budget.Amount, known bool) []string {
	return []string{fmt.Sprint(v.Tokens), money(v.Nano, known), fmt.Sprint(v.Calls)}
}

func limitAmounts(l budget.Limit, known bool) []string {
	cells := spent(budget.Amount(l), true)
	for i, v := range []int64{l.Tokens, l.Nano, l.Calls} {
		if v == 0 {
			cells[i] = "none"
		}
	}
	return cells
}

// money renders an amount; without a price the amount is unknown.
func money(nano int64, known bool) string {
	switch {
	case !known:
		return "unknown"
	case nano == 0:
		return "-"
	}
	return usd(nano)
}

// changeBudget sends the change and shows the current budget once the change is in effect.
func (a *controlCommands) changeBudget(ctx context.Context, s *seat, r client.BudgetRequest) error {
	if err := s.Budget(ctx, r); err != nil {
		return err
	}
	return a.recorded(ctx, s, r.RunID)
}
