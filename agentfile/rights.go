package agentfile

import (
	"slices"
	"strings"
)

// Grants are the names of the tools that a definition gives its agent: nil for
// all that its parent has. A name may hold * or mean a whole MCP server: see
// Expand. A tool of which only a part is given, such as Write(src/**), is not
// among them: nothing keeps an agent to a part, and all of it would be more than
// its author gave. The shell is: what its rules do not name needs a person.
func (d Definition) Grants() []string {
	if d.Tools == nil {
		return nil
	}
	names := []string{}
	for _, r := range d.Tools {
		if !r.partial() {
			names = append(names, r.Name)
		}
	}
	return names
}

// Denies are the names of the tools that a definition takes away, also those of
// which it names a part. Of the shell a part is a command that never runs.
func (d Definition) Denies() []string {
	names := []string{}
	for _, r := range d.DisallowedTools {
		if !r.deniesCommand() {
			names = append(names, r.Name)
		}
	}
	return names
}

// DeniedCommands are the commands of shell that refs take away; all other refs take
// a whole tool away.
func DeniedCommands(refs []ToolRef) (rules []string, rest []ToolRef) {
	for _, r := range refs {
		if r.deniesCommand() {
			rules = append(rules, r.Args)
		} else {
			rest = append(rest, r)
		}
	}
	return rules, rest
}

func (r ToolRef) deniesCommand() bool { return r.Name == "shell" && r.Args != "" && r.Args != "*" }

// partial: the agents that may be called and the rules of the shell are kept to,
// other arguments are not.
func (r ToolRef) partial() bool {
	return r.Args != "" && r.Args != "*" && r.Name != "delegate" && r.Name != "shell"
}

// Expand finds the tools that names mean, of all that there are: those of a
// server for mcp__server, and whatever fits a *. A plain name stays.
func Expand(names, tools []string) []string {
	if names == nil {
		return nil
	}
	list := []string{}
	for _, name := range names {
		r := ToolRef{Name: name}
		if !strings.Contains(name, "*") && (!strings.HasPrefix(name, "mcp__") || slices.Contains(tools, name)) {
			list = append(list, name)
			continue
		}
		for _, tool := range tools {
			if r.names(tool) {
				list = append(list, tool)
			}
		}
	}
	return list
}

// tellParts says what becomes of tools of which only a part is named, and of
// what is read and not acted on, or not as it is written.
func (d *decoder) tellParts() {
	for _, r := range d.def.Tools {
		if whole := (ToolRef{Name: r.Name}); r.partial() && !slices.Contains(d.def.Tools, whole) && !r.foreign() {
			d.note(d.lines["tools"], "%s(%s): patterns are not acted on yet, so the agent goes without %s; the name alone gives all of it", r.Name, r.Args, r.Name)
		}
	}
	for _, r := range d.def.DisallowedTools {
		if r.Args != "" && !r.deniesCommand() {
			d.note(d.lines["disallowedTools"], "%s(%s): patterns are not acted on yet, so the agent goes without all of %s", r.Name, r.Args, r.Name)
		}
	}
	switch d.def.PermissionMode {
	case ModeAcceptEdits, ModeDontAsk, ModeBypass:
		d.note(d.lines["permissionMode"], "permissionMode %s has no effect yet: what needs no approval is said by the operator, with --yes", d.def.PermissionMode)
	}
	switch d.def.Effort {
	case "", "low", "medium", "high":
	case "minimal", "none":
		d.note(d.lines["effort"], "effort %s is low here", d.def.Effort)
	case "xhigh", "max":
		d.note(d.lines["effort"], "effort %s is high here", d.def.Effort)
	default:
		d.note(d.lines["effort"], "effort %.40q is not low, medium or high; the run's is taken", d.def.Effort)
	}
	if d.def.Policy != "" {
		d.note(d.lines[ownKey], "%s.policy is read and has no effect yet: a policy is of a whole run: policy of troupe.cmd.run, docs/policy.md", ownKey)
	}
	if d.def.Export {
		d.note(d.lines[ownKey], "%s.export is read and has no effect yet", ownKey)
	}
}

// Line is that of the first of these keys that the file has, or 0.
func (d Definition) Line(keys ...string) int {
	for _, key := range keys {
		if line := d.At[key]; line > 0 {
			return line
		}
	}
	return 0
}
