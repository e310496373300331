package runspec

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/toolset/shell"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
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
		allow := b.cfg.Tools.OperatorRule(name).Allow
		if name == shell.Name { // these are read again for each run
			allow = req.operator.shell.Allow
		}
		all := slices.Contains(allowed, name) || allow != nil
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
