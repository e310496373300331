package trust

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// StripExecutable returns a definition without the parts that are executed, and the names of those
// parts.
func StripExecutable(d agentfile.Definition) (mine agentfile.Definition, off []string) {
	if len(d.Commands) > 0 {
		d.Commands, off = nil, append(off, "commands")
	}
	d, less := d.WithoutTrust()
	off = append(off, less...)
	isCommand := func(k spec.Hook) bool { return k.Command != "" }
	if slices.ContainsFunc(d.Hooks, isCommand) {
		d.Hooks, off = slices.DeleteFunc(slices.Clone(d.Hooks), isCommand), append(off, "hooks")
	}
	defines := func(s agentfile.MCPServer) bool { return s.Config != nil }
	if slices.ContainsFunc(d.MCPServers, defines) {
		d.MCPServers, off = slices.DeleteFunc(slices.Clone(d.MCPServers), defines), append(off, "MCP servers")
	}
	script := func(route string) bool { return strings.HasPrefix(route, agentfile.ScriptPrefix) }
	c := d.LoopOptions.Context.Model
	if script(d.Model) || slices.ContainsFunc(d.Fallback, script) || c != nil && script(c.Name) {
		off = append(off, "scripts as models")
		if d.Fallback = slices.DeleteFunc(slices.Clone(d.Fallback), script); script(d.Model) {
			d.Model = ""
		}
		if c != nil && script(c.Name) {
			d.LoopOptions.Context.Model = nil
		}
	}
	return d, off
}
