package agentfile

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/internal/toolset/command"
)

// GrantedTools returns the names of the tools that a definition grants its agent; nil grants all tools of its parent.
// A name may contain * or be that of a whole MCP server: see ExpandNames. The list includes tools that are granted in
// part, such as Write(src/**): OwnPermissions has the rules for the part. It omits a tool if the granted part is
// unknown: the whole tool would be more than its author granted.
func (d Definition) GrantedTools() []string {
	if d.Tools == nil {
		return nil
	}
	names, known := []string{}, map[string]bool{}
	for _, r := range d.Tools {
		if !known[r.Name] && !r.isPartial() {
			known[r.Name] = true
			names = append(names, r.Name)
		}
	}
	return names
}

// DeniedTools returns the names of the tools that a definition disallows, including those of whose
// parts nothing is known. OwnPermissions has the rules for the other parts.
func (d Definition) DeniedTools() []string {
	names := []string{}
	for _, r := range d.DisallowedTools {
		if !r.deniesPart() {
			names = append(names, r.Name)
		}
	}
	return names
}

// DenyRules returns the refs that disallow a part of a tool, as rules; all other refs disallow a whole tool.
func DenyRules(refs []ToolRef, from string) (rules []spec.PermissionRule, rest []ToolRef) {
	for _, r := range refs {
		if r.deniesPart() {
			rules = append(rules, spec.PermissionRule{Text: r.String(), From: from})
		} else {
			rest = append(rest, r)
		}
	}
	return rules, rest
}

// deniesPart reports whether a ref that disallows names a part of its tool by a pattern that can be read.
func (r ToolRef) deniesPart() bool {
	if r.Args == "" || r.Args == "*" {
		return false
	}
	_, err := permission.Parse(r.String())
	return err == nil
}

// isPartial reports whether a ref grants a part of a tool that no rule describes.
func (r ToolRef) isPartial() bool {
	if r.Args == "" || r.Args == "*" || r.Name == toolname.Delegate || slices.Contains(partlyAllowed, r.Name) {
		return false
	}
	_, err := permission.ParseAllow(r.String())
	return err != nil || !slices.Contains(partlyGranted, r.Name)
}

// ToolsCutOff returns the tools that the file of a child lists and that it never has below a parent: an agent has at
// most the tools of the agent that delegates to it.
func ToolsCutOff(parent, child Definition) (cut []string) {
	has := func(tool string) bool {
		matches := func(r ToolRef) bool { return r.matchesTool(tool) }
		granted := parent.Tools == nil || slices.ContainsFunc(parent.Tools, func(r ToolRef) bool { return matches(r) && !r.isPartial() })
		return granted && !slices.ContainsFunc(parent.DisallowedTools, func(r ToolRef) bool { return matches(r) && !r.deniesPart() })
	}
	for _, tool := range child.GrantedTools() {
		isTool := (ToolRef{Name: tool}).isKnown() || slices.ContainsFunc(child.Commands, func(c command.Config) bool { return c.Name == tool })
		if isTool && !strings.Contains(tool, "*") && !has(tool) && !slices.Contains(child.DeniedTools(), tool) {
			cut = append(cut, tool)
		}
	}
	return cut
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
		if !strings.Contains(name, "*") && (!strings.HasPrefix(name, toolname.MCPPrefix) || slices.Contains(tools, name)) {
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

// KeyLine returns the line of the first of these keys that the file has, or 0.
func (d Definition) KeyLine(keys ...string) int {
	for _, key := range keys {
		if line := d.At[key]; line > 0 {
			return line
		}
	}
	return 0
}
