package control

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/amount"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Budget makes the command budget.
func (cs *Commands) Budget() *cobra.Command {
	var l budgetFlags
	c := &cobra.Command{
		Use:   "budget RUN [set|freeze]",
		Short: "Show a run's limits and usage, or change its limits",
		Long: `Show the limits of a run, what it has used, what is reserved for running model calls
and the reserve for closing turns, for the run and for each agent.

set changes the given limits, keeps the others and lifts a freeze. freeze keeps the
limits but allows only closing turns: every agent summarizes its findings and ends.
Both need a run that has not ended.

With --agent ID, set changes the limit of that agent and all agents below it together,
while they work; what they have spent and hold counts. --freeze, or freeze, makes them
wait at their next turn, and --unfreeze lets them continue; the other agents go on.`,
		Example: `  troupe budget 01k9z3
  troupe budget 01k9z3 -o json | jq .budget.used.tokens
  troupe budget 01k9z3 set --max-tokens 200000 --max-budget-usd 2
  troupe budget 01k9z3 freeze
  troupe budget 01k9z3 set --agent root-2-0 --max-tokens 50000
  troupe budget 01k9z3 set --agent root-2-0 --freeze`,
		Annotations: map[string]string{command.Formats: command.DataFormats},
		Args:        checkBudgetArguments,
		RunE: func(c *cobra.Command, args []string) error {
			if err := l.checkArguments(c, args); err != nil {
				return err
			}
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				if len(args) == 1 {
					return cs.printBudget(ctx, s, run)
				}
				r := client.BudgetRequest{RunID: run, Freeze: args[1] == "freeze" || l.freeze, Unfreeze: l.unfreeze, Patch: args[1] == "set", Limits: l.givenLimits(c),
					By: request.UserName(), Agent: l.agent}
				return cs.changeBudget(ctx, s, r)
			})
		},
	}
	l.addFlags(c)
	return c
}

// budgetFlags are the limits that set can change.
type budgetFlags struct {
	tokens, calls int64
	usd           float64

	agent            string // whose limit, with those below it
	freeze, unfreeze bool
}

func (l *budgetFlags) addFlags(c *cobra.Command) {
	c.Flags().Var(amount.Tokens{Into: &l.tokens}, "max-tokens", "with set: most tokens of the whole tree, such as 200k")
	c.Flags().Var(amount.USD{Into: &l.usd}, "max-budget-usd", "with set: most US dollars of the whole tree")
	c.Flags().Int64Var(&l.calls, "max-tool-calls", 0, "with set: most tool calls of the whole tree")
	c.Flags().StringVar(&l.agent, "agent", "", "with set or freeze: the limit of this agent and the agents below it ("+command.AgentFlag+")")
	c.Flags().BoolVar(&l.freeze, "freeze", false, "with set --agent: the agents wait at their next turn")
	c.Flags().BoolVar(&l.unfreeze, "unfreeze", false, "with set --agent: the agents continue")
}

// givenLimits returns the limits that were given as flags: settings apply to new runs only.
func (l *budgetFlags) givenLimits(c *cobra.Command) (given spec.RunLimits) {
	if c.Flags().Changed("max-tokens") {
		given.Tokens = l.tokens
	}
	if c.Flags().Changed("max-budget-usd") {
		given.Nano = int64(math.Round(l.usd * budget.NanoPerUSD))
	}
	if c.Flags().Changed("max-tool-calls") {
		given.Calls = l.calls
	}
	return given
}

// checkArguments checks that the flags match the arguments.
func (l *budgetFlags) checkArguments(c *cobra.Command, args []string) error {
	given := c.Flags().Changed("max-tokens") || c.Flags().Changed("max-budget-usd") || c.Flags().Changed("max-tool-calls") || l.freeze || l.unfreeze
	hint := "troupe budget " + args[0] + " set --max-tokens N"
	switch set := len(args) == 2 && args[1] == "set"; {
	case l.agent == "" && (l.freeze || l.unfreeze):
		return exit.UsageError("troupe budget "+args[0]+" freeze ends the whole run; a new limit lifts it",
			"--freeze and --unfreeze need --agent")
	case l.freeze && l.unfreeze:
		return exit.UsageError("give one of them", "--freeze and --unfreeze contradict each other")
	case l.agent != "" && len(args) == 1:
		return exit.UsageError(hint, "--agent is given with set or freeze")
	case set && !given:
		return exit.UsageError(hint, "set names no limit")
	case !set && given:
		return exit.UsageError(hint, "a limit is changed with set")
	case set && !l.areValid(c):
		return exit.UsageError("troupe budget "+args[0]+" freeze stops all but closing turns", "a limit must be more than 0")
	}
	return nil
}

// areValid reports whether every given limit is valid.
func (l *budgetFlags) areValid(c *cobra.Command) bool {
	return (!c.Flags().Changed("max-tokens") || l.tokens > 0) && (!c.Flags().Changed("max-tool-calls") || l.calls > 0) &&
		(!c.Flags().Changed("max-budget-usd") || l.usd > 0)
}

func checkBudgetArguments(c *cobra.Command, args []string) error {
	if len(args) == 2 && (args[0] == "set" || args[0] == "freeze") { // as in "troupe policy set RUN"; the command reads args in this order
		args[0], args[1] = args[1], args[0]
	}
	switch {
	case len(args) == 1, len(args) == 2 && (args[1] == "set" || args[1] == "freeze"):
		return nil
	case len(args) == 2:
		return exit.UsageError("use set or freeze, or neither", "budget can set and freeze, not %q", args[1])
	}
	return command.Exactly("RUN")(c, args)
}

func (cs *Commands) printBudget(ctx context.Context, s *session.Session, run string) error {
	info, err := s.Describe(ctx, run)
	if err != nil {
		return err
	}
	doc, err := info.Budget()
	if err != nil {
		return err
	}
	d := info.Description
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(doc)
	}
	p := cs.Console.NewPage()
	b := d.Budget
	known, estimated := d.Model.Price.Known, info.Result != nil && info.Result.CostEstimated
	cells := func(v budget.Amount) []string { return amountCells(v, known, estimated) }
	rows := [][]string{
		amountRow("limit", limitCells(b.Limit)),
		amountRow("used", cells(b.Used)), amountRow("reserved", cells(b.Reserved)), amountRow("kept", cells(b.Kept)),
		amountRow("charged_unknown", cells(b.Unknown)), amountRow("overrun", cells(b.Overrun)),
	}
	if !b.Carved.Zero() {
		rows = append(rows, amountRow("carved", cells(b.Carved)))
	}
	p.AddTable(slices.Concat(console.Left("RUN"), console.Right("TOKENS", "MONEY", "CALLS")), rows)
	if b.Frozen {
		p.AddLine(cs.Console.Style.Yellow("frozen: only closing turns are granted; budget set lifts it"))
	}
	if b.Waiting > 0 {
		p.AddLine(fmt.Sprintf("%d agents wait for others to settle", b.Waiting))
	}
	if b.Paused > 0 {
		p.AddLine(cs.Console.Style.Yellow(fmt.Sprintf("waiting because their budget is frozen: %d; set --agent ID --unfreeze lets them continue", b.Paused)))
	}
	for _, m := range d.Agents {
		if m.Subtree != nil {
			p.AddLine(fmt.Sprintf("%s and the agents below it: %s", term.CleanLine(string(m.ID)), term.FormatSubtree(*m.Subtree)))
		}
	}
	p.Lines = append(p.Lines, "")
	rows = nil
	for _, m := range d.Agents {
		own := "the run's"
		if m.Limit.Tokens > 0 {
			own = term.FormatTokens(m.Limit.Tokens)
		}
		rows = append(rows, []string{term.CleanLine(string(m.ID)), term.CleanLine(m.Name), own, term.FormatTokens(m.Used.Tokens), term.FormatTokens(m.Reserved.Tokens),
			term.FormatTokens(m.Kept.Tokens), console.CostText(float64(m.Used.Nano)/budget.NanoPerUSD, known, estimated), fmt.Sprint(m.Used.Calls)})
	}
	if d.AgentsLeftOut > 0 {
		rows = append(rows, []string{"…", "and " + console.CountOf(d.AgentsLeftOut, "agent")})
	}
	p.AddTable(slices.Concat(console.Left("ID", "AGENT"), console.Right("LIMIT", "USED", "RESERVED", "KEPT", "MONEY", "CALLS")), rows)
	return cs.Console.PrintLines(p.Lines)
}

func amountRow(name string, cells []string) []string { return append([]string{name}, cells...) }

func amountCells(v budget.Amount, known, estimated bool) []string {
	return []string{term.FormatTokens(v.Tokens), console.CostText(float64(v.Nano)/budget.NanoPerUSD, known, estimated), fmt.Sprint(v.Calls)}
}

func limitCells(l budget.Limit) []string {
	cells := amountCells(budget.Amount(l), true, false)
	for i, v := range []int64{l.Tokens, l.Nano, l.Calls} {
		if v == 0 {
			cells[i] = "none"
		}
	}
	return cells
}

// changeBudget sends the change and says in one line what is in force from then on.
func (cs *Commands) changeBudget(ctx context.Context, s *session.Session, r client.BudgetRequest) error {
	if err := s.Budget(ctx, r); err != nil {
		return err
	}
	var limit budget.Limit
	if r.Agent == "" {
		// The change has been made, whether the other limits can be read now or not: without them the line names the change.
		if info, err := s.Describe(ctx, r.RunID); err == nil && info.Description != nil {
			limit = info.Description.Budget.Limit
		}
	}
	// The log has the change, and the supervisor may not have read it yet: so it counts here.
	limit.Tokens, limit.Nano, limit.Calls = cmp.Or(r.Limits.Tokens, limit.Tokens), cmp.Or(r.Limits.Nano, limit.Nano), cmp.Or(r.Limits.Calls, limit.Calls)
	limits := map[string]any{}
	for name, v := range map[string]int64{"tokens": limit.Tokens, "nano_usd": limit.Nano, "tool_calls": limit.Calls} {
		if v > 0 {
			limits[name] = v
		}
	}
	fields := map[string]any{"limits": limits, "frozen": r.Freeze}
	if r.Agent != "" {
		fields["agent"] = r.Agent
	}
	return cs.printInForce(ctx, s, r.RunID, budgetLine(r, limit), fields)
}

// budgetLine says in one line what a change of limits has put in force.
func budgetLine(r client.BudgetRequest, limit budget.Limit) string {
	of, none := "the run", "no limit"
	if r.Agent != "" {
		of, none = term.CleanLine(r.Agent)+" and the agents below it", "its limit is unchanged"
	}
	var parts []string
	if limit.Tokens > 0 {
		parts = append(parts, term.FormatTokens(limit.Tokens)+" tokens")
	}
	if limit.Nano > 0 {
		parts = append(parts, term.FormatUSD(float64(limit.Nano)/budget.NanoPerUSD, false))
	}
	if limit.Calls > 0 {
		parts = append(parts, console.CountOf(int(limit.Calls), "tool call"))
	}
	line := "in force for " + of + ": " + none
	if len(parts) > 0 {
		line = "in force for " + of + ": at most " + strings.Join(parts, ", ")
	}
	switch {
	case r.Freeze && r.Agent == "":
		line += "; frozen: only closing turns are granted"
	case r.Freeze:
		line += "; frozen: they wait at their next turn"
	case r.Unfreeze:
		line += "; not frozen: they continue"
	}
	return line
}
