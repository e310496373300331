package request

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/amount"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/namedlimit"
)

// flagOf is the flag of a field of a request.
func flagOf(field string) string { return strings.ReplaceAll(field, "_", "-") }

// addAgentLimits adds the flags of the limits that each agent of the run has.
func (r *Flags) addAgentLimits(f *pflag.FlagSet) {
	q := &r.Request
	for _, n := range namedlimit.All() {
		if n.Request != "" {
			f.Int64Var(q.Field(n.Request), flagOf(n.Request), 0, n.Text)
		}
	}
	f.Var(amount.Tokens{Into: &q.MaxAgentTokens}, "max-agent-tokens", "most tokens of one agent (default: those of the run)")
	f.Var(amount.USD{Into: &q.MaxAgentBudgetUSD}, "max-agent-budget-usd",
		"most US dollars of one agent (default: those of the run)")
	f.IntVar(&q.ToolRetries, "tool-retries", 0,
		"how often a tool call is retried after a temporary failure, at most 3; -1 for never (default 3)")
	f.DurationVar(&r.patience, "patience", 0,
		"how long an agent waits for a model that throttles all callers (default 10m)")
}

// checkAgentLimits refuses limits that no agent could have.
func (r *Flags) checkAgentLimits() error {
	for _, n := range namedlimit.All() {
		if v := r.Request.Field(n.Request); v != nil && !n.Allows(*v) {
			return exit.UsageError("leave it out for the default", "--%s is %d: it may be %d to %d", flagOf(n.Request), *v, n.Least, n.Most)
		}
	}
	for name, v := range map[string]int64{"max-agent-tokens": r.Request.MaxAgentTokens, "patience": int64(r.patience)} {
		if v < 0 {
			return exit.UsageError("leave it out for the default", "--%s must not be negative", name)
		}
	}
	if r.Request.MaxAgentBudgetUSD < 0 {
		return exit.UsageError("leave it out for the default", "--max-agent-budget-usd must not be negative")
	}
	return nil
}
