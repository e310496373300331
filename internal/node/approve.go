package node

import (
	"context"
	"maps"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/approval"
	"github.com/troupe-run/troupe/internal/guardrail"
	"github.com/troupe-run/troupe/internal/hook"
)

// allGoHooks are the functions of the operator, and troupe's own.
func (c Config) allGoHooks() map[string]hook.Func {
	all := maps.Clone(c.GoHooks)
	if all == nil {
		all = map[string]hook.Func{}
	}
	all[spec.PermissionHook] = approval.PrepareQuestion
	for _, name := range guardrail.HookNames() {
		all[name] = func(_ context.Context, call hook.Call) (spec.HookAnswer, error) {
			return guardrail.Check(call.Hook, call.Data)
		}
	}
	return all
}
