package runspec

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/approval"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool/shell"
)

// restrictedGrants are the restricted tools of a run, and the definitions that offer them.
type restrictedGrants struct {
	tools       []model.ToolSpec
	definitions []supervisor.Definition
}

// grantRestricted gives the run the restricted tools that are named by a definition, the
// request or the operator. A tool with such a name that exists already is another source's
// own tool and stays.
func (b *Builder) grantRestricted(req acceptedRequest, allowed []string, t toolGrants) (g restrictedGrants, err error) {
	forAll := map[string]bool{} // whether all agents may have it
	for _, name := range toolset.RestrictedTools {
		named := slices.ContainsFunc(t.definitions, func(d supervisor.Definition) bool { return slices.Contains(d.Tools, name) })
		all := slices.Contains(allowed, name) || b.cfg.Tools.OperatorRule(name).Allow != nil
		if !named && !all || toolset.IndexTool(t.tools, name) >= 0 || name == shell.Name && req.workspace == "" {
			continue
		}
		made, err := b.cfg.Tools.MakeTool(name, req.workspace, "")
		if err != nil {
			return g, fmt.Errorf("runspec: tools: %w", err)
		}
		g.tools, forAll[name] = append(g.tools, made.Spec()), all
	}
	g.definitions = withholdRestricted(t.definitions, slices.Concat(t.tools, g.tools), forAll)
	return g, nil
}

// withholdRestricted keeps a restricted tool that other definitions name from those that name no
// tools: such an agent may pass it on to a child that names it, and does not have it
// itself.
func withholdRestricted(defs []supervisor.Definition, tools []model.ToolSpec, forAll map[string]bool) []supervisor.Definition {
	var offer []string
	for _, s := range tools {
		if all, restricted := forAll[s.Name]; all || !restricted {
			offer = append(offer, s.Name)
		}
	}
	if len(offer) == len(tools) {
		return defs
	}
	defs = slices.Clone(defs)
	for i, d := range defs {
		if d.Tools == nil && d.Offer == nil {
			defs[i].Offer = offer
		}
	}
	return defs
}

// withApprovals adds the hook before the calls that need approval, once the classes of all
// tools are known: irreversible ones, and the shell.
func (b *Builder) withApprovals(req acceptedRequest, root string, g serverGrants, t toolGrants) []supervisor.Definition {
	var asked []string
	for _, s := range t.tools {
		if s.Class == model.Irreversible {
			asked = append(asked, s.Name)
		}
	}
	tools := slices.Clone(asked)
	if toolset.IndexTool(t.tools, shell.Name) >= 0 && !toolset.IsCommand(t.commands, shell.Name) && !slices.Contains(tools, shell.Name) {
		tools = append(tools, shell.Name)
	}
	rule := b.cfg.Tools.OperatorRule(shell.Name)
	run := approval.Rules{Yes: req.Yes, Asked: asked, Allow: slices.Clone(rule.Allow), Request: approval.AllowedCommands(agentfile.ParseToolRefs(g.allowed))}
	denied, _ := agentfile.DeniedCommands(agentfile.ParseToolRefs(g.disallowed))
	run.Deny = slices.Concat(rule.Deny, deniedByDirectory(req.settings), denied)
	defs := slices.Clone(t.definitions)
	for i, d := range defs {
		mine := run
		hooks := slices.DeleteFunc(slices.Clone(d.LoopOptions.Hooks), func(k spec.Hook) bool {
			if k.Name != approval.HookName {
				return false
			}
			var said approval.Rules
			if json.Unmarshal([]byte(k.Rules), &said) == nil {
				mine.Allow, mine.Deny = slices.Concat(mine.Allow, said.Allow), slices.Concat(mine.Deny, said.Deny)
			}
			return true
		})
		// The hooks of a parent bind its children. An agent that names no tools has those of its parent,
		// with the parent's rules. The root has no parent: under a root that may only pass the shell on,
		// the rules of a child's file allow nothing.
		mine.DenyOnly = d.Name != root && d.Offer != nil && !slices.Contains(d.Offer, shell.Name)
		has := func(name string) bool { return d.Tools == nil || slices.Contains(d.Tools, name) }
		if slices.ContainsFunc(tools, has) {
			hooks = append(hooks, mine.NewHook(slices.Clone(tools)...))
		}
		defs[i].LoopOptions.Hooks = hooks
	}
	return defs
}

// deniedByDirectory returns the commands that the settings of the directory deny: the
// directory may come from anyone, so its settings can only lower trust. Classify has
// refused a file that cannot be read.
func deniedByDirectory(settings *agentfile.DirectorySettings) []string {
	if settings == nil || settings.SharedErr != nil {
		return nil
	}
	rules := settings.Shared.Tools
	i := slices.IndexFunc(rules, func(r agentfile.ToolRule) bool { return r.Name == shell.Name })
	if i < 0 {
		return nil
	}
	return rules[i].Deny
}
