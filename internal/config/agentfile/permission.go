package agentfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// allToolsWords lists the words for all tools.
var allToolsWords = []string{"*", "all", "all tools"}

// readTools takes a list of tools, or OpenCode's mapping of names to on and off.
func readTools(d *decoder, key string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		items := d.readList(n, key)
		if !slices.ContainsFunc(items, func(s string) bool { return slices.Contains(allToolsWords, strings.ToLower(s)) }) {
			d.def.Tools = parseToolRefs(items)
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i].Value; !d.readBool(n.Content[i+1], key+"."+name) {
			d.denyTool(name)
		}
	}
}

// denyTool disallows tools. OpenCode's `edit` means all tools that change a file.
func (d *decoder) denyTool(name string) {
	list := parseToolRefs([]string{name})
	if list[0].Name == "edit_file" {
		list = append(list, ToolRef{Name: "write_file"})
	}
	d.def.DisallowedTools = append(d.def.DisallowedTools, list...)
}

// readPermission reads OpenCode's permissions: {edit: deny, bash: {"git *": allow, "*": deny}}.
// Only denials count here, and a tool that is denied in part is denied as a whole: only the
// operator decides what may run without approval.
func readPermission(d *decoder, key string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		if d.readDecision(n, key) == "deny" {
			d.def.Tools = []ToolRef{}
			d.denyTool("*") // including tools that a later key names
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		d.rejectValue(n, key, "allow, ask, deny or a mapping of tools, such as {edit: deny}")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, n.Content[i+1]
		switch {
		case value.Kind != yaml.MappingNode:
			if d.readDecision(value, key+"."+name) == "deny" {
				d.denyTool(name)
			}
		case name == "task":
			d.def.Delegates = d.readAllowedAgents(key+"."+name, value)
		default:
			d.readPatterns(key+"."+name, name, value)
		}
	}
}

// readPatterns are decisions on parts of a tool.
func (d *decoder) readPatterns(key, name string, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if pattern := n.Content[i].Value; d.readDecision(n.Content[i+1], key+"."+pattern) == "deny" {
			d.addNote(n.Content[i].Line+1,
				"%s denies %.40q: patterns are not acted on here, so the agent goes without %s", key, pattern, ToolName(name))
			d.denyTool(name)
			return
		}
	}
}

// readAllowedAgents returns the agents that the agent may call: nil is any.
func (d *decoder) readAllowedAgents(key string, n *yaml.Node) []string {
	names, all, denied := []string{}, false, ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		switch {
		case d.readDecision(n.Content[i+1], key+"."+name) == "deny":
			if name != "*" {
				denied = name
			}
		case name == "*":
			all, denied = true, "" // the last match counts
		case strings.ContainsRune(name, '*'):
			d.addNote(n.Content[i].Line+1, "%s: %.40q names no agent and is left out", key, name)
		default:
			names = append(names, agentName(name))
		}
	}
	switch {
	case all && denied == "":
		return nil
	case all:
		d.addNote(n.Line+1,
			"%s: all but %.40q cannot be kept here, so it may call only those that are allowed by name", key, denied)
	}
	return names
}

// agentName is troupe's name of an agent that another tool calls PLUGIN:NAME.
func agentName(name string) string { return sanitizeName(name[strings.LastIndexByte(name, ':')+1:]) }
