package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// grantTools returns the tools that both the parent and the definition allow, and the
// denials of both.
func (o Opened) grantTools(parent, deny []string, def Definition) (rights, denied []string) {
	if parent == nil {
		for _, t := range o.Tools {
			parent = append(parent, t.Name)
		}
	}
	denied = slices.Concat(deny, def.Deny) //mutant:denies-not-united
	rights = []string{}
	for _, name := range parent {
		if (def.Tools == nil || slices.Contains(def.Tools, name)) && !slices.Contains(denied, name) {
			rights = append(rights, name)
		}
	}
	return rights, denied
}

// noteCutTools publishes which tools that the own list of a child names are not granted to it, and why: once for a
// parent's definition and a child's.
func noteCutTools(s State, parent Member, def Definition, rights []string) State {
	pair := parent.Name + "\x00" + def.Name
	if slices.Contains(s.cutNoted, pair) {
		return s
	}
	var denied, missing []string
	for _, t := range s.Run.Tools {
		switch {
		case !slices.Contains(def.Tools, t.Name), slices.Contains(rights, t.Name), slices.Contains(def.Deny, t.Name):
		case slices.Contains(parent.Deny, t.Name):
			denied = append(denied, t.Name)
		default:
			missing = append(missing, t.Name)
		}
	}
	if len(denied)+len(missing) == 0 {
		return s
	}
	s.cutNoted = append(slices.Clip(s.cutNoted), pair)
	var why []string
	if len(missing) > 0 {
		why = append(why, joinTools(missing)+": not among the tools of "+parent.Name)
	}
	if len(denied) > 0 {
		why = append(why, joinTools(denied)+": denied to "+parent.Name)
	}
	return s.publishEvent(event.KindWarningRaised, event.Warning{What: def.Name + " has fewer tools than its own list, because its parent has", Why: strings.Join(why, "; "), Live: s.Live})
}

const toolsShown = 8

// joinTools joins the first names of a list, and counts the rest.
func joinTools(names []string) string {
	if more := len(names) - toolsShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:toolsShown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// forbiddenTools lists the tools of the run that a member may not use, and those that it is denied
// by name. A tool that the member may use is not forbidden, even if it is not offered.
func (o Opened) forbiddenTools(m Member) []string {
	var list []string
	for _, toolSpec := range o.Tools {
		if !slices.Contains(m.Rights, toolSpec.Name) {
			list = append(list, toolSpec.Name)
		}
	}
	for _, name := range m.Deny {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// hooksBytesMax bounds the hooks of one child together with those of its
// ancestors, so that its task fits an entry.
const hooksBytesMax = 32 << 10

// bindingPoints are the points at which the hooks of a parent bind its
// descendants, too: around model calls and tool calls. A hook on context, stop or
// stop_failure concerns one agent's own prompt or own end.
var bindingPoints = []spec.HookPoint{spec.HookInput, spec.HookOutput, spec.HookSampled, spec.HookPreTool, spec.HookToolError, spec.HookToolResult, spec.HookPostTool}

// bindingHooks are the hooks of a task that bind the children of its agent. A hook
// whose author wrote "of: root" binds the root alone.
func bindingHooks(t spec.Task) []spec.Hook {
	var list []spec.Hook
	for _, h := range t.LoopOptions.Hooks {
		if h.Of != spec.OfRoot && slices.Contains(bindingPoints, h.Point) {
			list = append(list, h)
		}
	}
	return list
}

// inheritHooks adds the hooks that bind a parent's children to those of a child; equal hooks
// count once. Approval rules are hooks, too, and the strictest answer counts: the child may do
// without approval only what each of its ancestors may.
//
// In another node pool the directory of the parent does not exist, so its command hooks cannot
// run there: a gate that does not define the decision for its failure counts as closed.
func inheritHooks(own, bound []spec.Hook, elsewhere bool) []spec.Hook {
	own = slices.Clone(own)
	for _, h := range bound {
		at := slices.Index(own, h)
		if at < 0 {
			own, at = append(own, h), len(own)
		}
		if elsewhere && h.Command != "" && h.Failing == spec.HookPass && h.Point.Knows(spec.HookDeny) {
			own[at].Failing = spec.HookDeny
		}
	}
	return own
}

// bindChild tightens the task of a child to the hooks of its parent that bind it and to the parent's remaining
// budget, whose account is given. elsewhere: it works in another node pool. why says why the child is refused; it is
// empty if the child is accepted.
func bindChild(t spec.Task, binding []spec.Hook, elsewhere bool, account budget.Account) (bound spec.Task, why string) {
	t.LoopOptions.Hooks = inheritHooks(t.LoopOptions.Hooks, binding, elsewhere) //mutant:hooks-not-inherited
	if why := tooManyHooks(t.LoopOptions.Hooks); why != "" && len(binding) > 0 {
		return t, why
	}
	left, spent := remainingBudget(account)
	if spent {
		return t, "the rest of its parent's own budget does not cover another agent"
	}
	t.Limits = tighterLimits(t.Limits, left)
	return t, ""
}

// tooManyHooks says why a child cannot keep to its hooks and those of its
// ancestors; "" if it can.
func tooManyHooks(hooks []spec.Hook) string {
	size := 0
	for _, h := range hooks {
		size += len(h.Name) + len(h.Tools) + len(h.Command) + len(h.Rules)
	}
	switch {
	case len(hooks) > spec.HooksMax:
		return "it has more hooks, with those of its parents, than one agent may have"
	case size > hooksBytesMax:
		return "its hooks, with those of its parents, are too large for one task"
	}
	return ""
}

// remainingBudget is the amount that an account may still spend; spent says that nothing
// is left of a limited component.
func remainingBudget(a budget.Account) (left spec.Limits, spent bool) {
	rest := func(limit, used int64) int64 {
		if limit == 0 {
			return 0 // no limit
		}
		spent = spent || used >= limit
		return max(limit-used, 1)
	}
	left.Tokens, left.Nano = rest(a.Limit.Tokens, a.Spent.Tokens), rest(a.Limit.Nano, a.Spent.Nano)
	left.Calls = int(rest(a.Limit.Calls, a.Spent.Calls))
	return left, spent
}
