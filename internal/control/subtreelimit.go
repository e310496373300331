package control

import (
	"context"
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/supervisor"
)

// setSubtreeLimit serves the verb budget for an agent and the agents below it.
func (c *commander) setSubtreeLimit(ctx context.Context, r client.BudgetRequest) (any, error) {
	bad := func(hint, format string, args ...any) error {
		return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf(format, args...), Hint: hint}
	}
	if err := names.CheckToken(r.Agent); err != nil {
		return nil, bad("`troupe budget` shows the ids of agents", "agent: %v", err)
	}
	f := supervisor.SubtreeLimitSet{Agent: spec.ID(r.Agent), By: namedBy(r.By)}
	f.Limit = budget.Limit{Tokens: r.Limits.Tokens, Nano: r.Limits.Nano, Calls: r.Limits.Calls}
	switch {
	case r.Freeze && r.Unfreeze:
		return nil, bad("leave one of them out", "a subtree is frozen or unfrozen, not both")
	case r.Freeze, r.Unfreeze:
		f.Frozen = &r.Freeze
	}
	others := r.Limits
	others.Tokens, others.Nano, others.Calls = 0, 0, 0
	if others != (spec.RunLimits{}) {
		return nil, bad("limit the whole run: leave agent out",
			"an agent and those below it have limits of tokens, money and tool calls only")
	}
	if err := f.Validate(); err != nil {
		return nil, bad("name tokens, nano_usd or tool_calls, freeze or unfreeze", "%v", err)
	}
	l, err := c.lookAtRun(ctx, r.RunID, r.Request)
	if err != nil {
		return nil, err
	}
	full, err := c.states.Replay(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return nil, err
	}
	if l.State() != client.RunFinished && full.State.Phase != "" {
		if why := supervisor.CheckSubtreeLimit(full.State, f); why != "" {
			return nil, bad("`troupe budget` shows the agents and their limits", "%s", why)
		}
	}
	return c.appendToViewed(ctx, l, r.Request, "", "", f.Kind(), f)
}
