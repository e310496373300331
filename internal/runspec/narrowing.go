package runspec

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

const narrowingHint = "see docs/permissions.md#narrower-rights-while-a-run-works"

// ParseNarrowing reads the rules and the mode that a request sets while a run works. A rule that fits no tool of the run is
// refused: it would protect nothing.
func ParseNarrowing(o supervisor.Opened, r client.PermissionsRequest) (n spec.Narrowing, err error) {
	from := "set while the run works"
	if r.By != "" {
		from = "set by " + permission.VisibleLine(r.By)
	}
	if n.Mode, err = agentfile.ParseMode(r.Mode); err != nil {
		return n, refuse.Bad(narrowingHint, "mode: %v", err)
	}
	var p spec.Permissions
	if p.Ask, err = agentfile.ParseRules(r.Ask, from, false); err != nil {
		return n, refuse.Bad(narrowingHint, "ask: %v", err)
	}
	if p.Deny, err = agentfile.ParseRules(r.Deny, from, false); err != nil {
		return n, refuse.Bad(narrowingHint, "deny: %v", err)
	}
	for _, rule := range slices.Concat(p.Ask, p.Deny) {
		if !fitsTool(o, rule.Text) {
			return n, refuse.Bad("`troupe describe RUN` lists the tools; "+narrowingHint, "the rule %.200s fits no tool of the run", rule.Text)
		}
	}
	if p, err = withRealPaths(p, o.Workspace); err != nil {
		return n, err
	}
	n.Ask, n.Deny = p.Ask, p.Deny
	return n, nil
}

// fitsTool reports whether a rule is about a tool that agents of a run have, or can be given.
func fitsTool(o supervisor.Opened, text string) bool {
	rule, err := permission.ParseGuard(text)
	if err != nil {
		return false
	}
	about := func(name string) bool { return permission.IsAbout(rule.Tool(), name) }
	return slices.ContainsFunc(o.Tools, func(t model.ToolSpec) bool { return about(t.Name) }) || slices.ContainsFunc(toolset.RestrictedTools, about)
}
