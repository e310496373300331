package runspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/supervisor"
)

// CutRule is a rule of an agent file that allows calls which an agent above may not make without a question: the
// permissions of a parent bind its children, so below it the rule has no effect.
type CutRule struct {
	Agent, Rule string
	Above       string // the agent whose right is missing
	Why         string // which right
}

func (c CutRule) String() string {
	return fmt.Sprintf("the rule %.200s of %s has no effect below %s: %s", c.Rule, c.Agent, c.Above, c.Why)
}

// FindCutRules returns the rules of agent files that have no effect below the agents that delegate to them, from the
// root down; each rule once.
func FindCutRules(o supervisor.Opened) (cut []CutRule) {
	above := map[string][]supervisor.Definition{} // the first way from the root to an agent
	root := definitionIndex(o.Definitions, o.Root)
	if root < 0 || o.Permissions == nil {
		return nil
	}
	queue := []supervisor.Definition{o.Definitions[root]}
	above[o.Root] = []supervisor.Definition{}
	for len(queue) > 0 {
		parent := queue[0]
		queue = queue[1:]
		if !hasTool(parent, delegateTool) {
			continue
		}
		for _, d := range o.Definitions {
			isNamed := slices.Contains(parent.Delegates, d.Name)
			if _, known := above[d.Name]; known || !isNamed && (parent.Delegates != nil || d.OnlyNamed) {
				continue
			}
			above[d.Name] = append(slices.Clip(above[parent.Name]), parent)
			cut = append(cut, cutRulesOf(o, d, above[d.Name])...)
			queue = append(queue, d)
		}
	}
	return cut
}

func hasTool(d supervisor.Definition, name string) bool {
	return (d.Tools == nil || slices.Contains(d.Tools, name)) && !slices.Contains(d.Deny, name)
}

// cutRulesOf returns the rules of an agent that one of the agents above cuts off.
func cutRulesOf(o supervisor.Opened, d supervisor.Definition, above []supervisor.Definition) (cut []CutRule) {
	if d.Source == "" || d.Permissions == nil {
		return nil
	}
	for _, r := range d.Permissions.Allow {
		c, ok := permission.ExampleOf(r.Text)
		i := toolset.IndexTool(o.Tools, c.Tool)
		if !ok || i < 0 || !hasTool(d, c.Tool) {
			continue // warnUnmatchedRules names it
		}
		t := permission.Tool{Class: o.Tools[i].Class, Command: slices.ContainsFunc(o.Commands, func(k spec.Command) bool { return k.Name == c.Tool })}
		decide := func(of supervisor.Definition) permission.Verdict {
			return permission.Compile([]spec.Permissions{permission.Merge(*o.Permissions, of.Permissions)}, o.Workspace, o.Writable).Decide(c, t, nil)
		}
		own := decide(d)
		if own.Decision > permission.AllowConfined {
			continue // another rule counts more
		}
		for _, a := range above {
			why := ""
			if !hasTool(a, c.Tool) {
				why = c.Tool + " is not among its tools"
			} else if v := decide(a); v.Decision > permission.AllowConfined {
				why = v.Why
			}
			if why != "" {
				cut = append(cut, CutRule{Agent: d.Name, Rule: r.Text, Above: a.Name, Why: why})
				break
			}
		}
	}
	return cut
}

const cutRulesShown = 3

// warnCutRules notes rules that have no effect, in one line.
func warnCutRules(o supervisor.Opened) []string {
	var texts []string
	for _, c := range FindCutRules(o) {
		texts = append(texts, c.String())
	}
	if len(texts) == 0 {
		return nil
	}
	more := ""
	if n := len(texts) - cutRulesShown; n > 0 {
		texts, more = texts[:cutRulesShown], fmt.Sprintf("; and %d more rules: `troupe agents describe NAME` lists them", n)
	}
	return []string{strings.Join(texts, "; ") + more}
}

// RightsNotes notes for the author of an agent file what of its rights has no effect in a run that begins with the agent:
// rules that match none of its tools, and tools of its own list that it does not have.
func RightsNotes(o supervisor.Opened, name string) (notes []string) {
	i := definitionIndex(o.Definitions, name)
	if i < 0 {
		return nil
	}
	d := o.Definitions[i]
	var has []string
	for _, s := range o.Tools {
		if hasTool(d, s.Name) && (d.Offer == nil || slices.Contains(d.Offer, s.Name)) {
			has = append(has, s.Name)
		}
	}
	for _, tool := range d.Tools {
		switch {
		case slices.Contains(has, tool):
		case slices.Contains(d.Deny, tool):
			notes = append(notes, fmt.Sprintf("the agent does not have %.80s, which its list of tools names: it is denied to it", tool))
		case !agentfile.IsBuiltin(tool) && !isServerTool(tool):
			notes = append(notes, fmt.Sprintf("the agent does not have %.80s, which its list of tools names: no tool has this name%s", tool, agentfile.SuggestTool(tool)))
		}
	}
	if d.Permissions == nil {
		return notes
	}
	for _, r := range listRules(*d.Permissions) {
		parsed, err := permission.Parse(r.Text)
		isAbout := func(tool string) bool { return permission.IsAbout(parsed.Tool(), tool) }
		if err != nil || slices.ContainsFunc(has, isAbout) || d.Tools == nil && isServerTool(parsed.Tool()) {
			continue
		}
		why := "the agent does not have " + parsed.Tool()
		if !slices.ContainsFunc(toolset.ToolNames(o.Tools), isAbout) && !agentfile.IsBuiltin(parsed.Tool()) {
			why = whyUnmatched(parsed.Tool(), true, toolset.ToolNames(o.Tools))
		}
		notes = append(notes, fmt.Sprintf("the rule %.200s matches no call: %s", r.Text, why))
	}
	return notes
}

// isServerTool reports whether a name is of a tool of an MCP server, which may be one that this node does not have.
func isServerTool(name string) bool { return strings.HasPrefix(name, toolname.MCPPrefix) }
