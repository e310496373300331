package agentfile

import (
	"slices"
	"strings"
)

// GrantedTools returns the names of the tools that a definition grants its agent; nil grants all
// tools of its parent. A name may contain * or stand for a whole MCP server: see ExpandNames.
// GrantedTools omits a tool that is granted only in part, such as Write(src/**): troupe cannot
// confine an agent to a part, and the whole tool would be more than its author granted. It
// includes the shell, whose other commands need approval.
func (d Definition) GrantedTools() []string {
	if d.Tools == nil {
		return nil
	}
	names := []string{}
	for _, r := range d.Tools {
		if !r.isPartial() {
			names = append(names, r.Name)
		}
	}
	return names
}

// DeniedTools returns the names of the tools that a definition disallows, including those that
// it names in part. A part of the shell is a command that never runs.
func (d Definition) DeniedTools() []string {
	names := []string{}
	for _, r := range d.DisallowedTools {
		if !r.deniesCommand() {
			names = append(names, r.Name)
		}
	}
	return names
}

// DeniedCommands returns the commands of shell that refs disallow; all other refs disallow
// a whole tool.
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

// isPartial reports whether a ref has arguments that are not enforced: only lists of agents
// and rules of the shell are.
func (r ToolRef) isPartial() bool {
	return r.Args != "" && r.Args != "*" && r.Name != "delegate" && r.Name != "shell"
}

// ExpandNames replaces names by the tools that they match, out of all tools: mcp__server matches
// those of a server, and * matches any text. A plain name stays.
func ExpandNames(names, tools []string) []string {
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
			if r.matchesTool(tool) {
				list = append(list, tool)
			}
		}
	}
	return list
}

// noteUnenforcedParts adds notes about tools that are named only in part, and about keys that are
// read and have no effect, or another effect than the one written.
func (d *decoder) noteUnenforcedParts() {
	for _, r := range d.def.Tools {
		if whole := (ToolRef{Name: r.Name}); r.isPartial() && d.hasRoomForNotes() && !slices.Contains(d.def.Tools, whole) && !r.isForeign() {
			d.addNote(d.lines["tools"], "%s(%s): patterns are not acted on yet, so the agent goes without %s; the name alone gives all of it", r.Name, r.Args, r.Name)
		}
	}
	for _, r := range d.def.DisallowedTools {
		if r.Args != "" && !r.deniesCommand() {
			d.addNote(d.lines["disallowedTools"], "%s(%s): patterns are not acted on yet, so the agent goes without all of %s", r.Name, r.Args, r.Name)
		}
	}
	switch d.def.PermissionMode {
	case ModeAcceptEdits, ModeDontAsk, ModeBypass:
		d.addNote(d.lines["permissionMode"], "permissionMode %s has no effect yet: only the operator can waive approvals, with --yes", d.def.PermissionMode)
	}
	switch d.def.Effort {
	case "", "low", "medium", "high":
	case "minimal", "none":
		d.addNote(d.lines["effort"], "effort %s is low here", d.def.Effort)
	case "xhigh", "max":
		d.addNote(d.lines["effort"], "effort %s is high here", d.def.Effort)
	default:
		d.addNote(d.lines["effort"], "effort %.40q is not low, medium or high; the run's effort is used", d.def.Effort)
	}
	if d.def.Policy != "" {
		d.addNote(d.lines[ownKey], "%s.policy is read and has no effect yet: a policy is of a whole run: policy of troupe.cmd.run, docs/policy.md", ownKey)
	}
	if d.def.Export {
		d.addNote(d.lines[ownKey], "%s.export is read and has no effect yet", ownKey)
	}
}

// KeyLine returns the line of the first of these keys that the file has, or 0.
func (d Definition) KeyLine(keys ...string) int {
	for _, key := range keys {
		if line := d.At[key]; line > 0 {
			return line
		}
	}
	return 0
}
