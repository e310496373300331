package runspec

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/trust"
)

// registerTeam adds the agents that were found in the directory and with the user. Every agent that
// does not restrict its own delegates may delegate to them. An agent that the request names must
// be usable; any other unusable one is left out with a note, because the request did not ask for it.
func (r *agentResolver) registerTeam(t agentSet, found foundAgents) (agentSet, error) {
	named := namedAgents(r.req.agents, slices.Concat(t.files, found.definitions))
	t.required = maps.Clone(named)
	for _, d := range t.files { // the request names their directory
		t.required[d.Name] = true
	}
	notes := found.notes // about agents that the request does not name
	var untrusted []string
	for _, d := range found.definitions {
		var off []string
		if !r.cfg.Trust.TrustsFile(d.Path, d.Digest, r.req.workspace) {
			d, off = trust.StripExecutable(d)
			untrusted = append(untrusted, d.Name)
		}
		d, servers := withoutOwnServers(d, named[d.Name])
		before := t
		before.warnings = slices.Clone(t.warnings)
		if len(off) > 0 {
			t.addIgnored(d, "its %s; name the directory with --agents to allow them", strings.Join(off, ", "))
		}
		if len(servers) > 0 {
			t.addIgnored(d, "its MCP servers %s; only a run that names the agent starts them", strings.Join(servers, ", "))
		}
		next, err := r.registerFile(t, d)
		if err != nil && named[d.Name] {
			return t, err
		}
		if err != nil {
			next = before
			next.addWarning("%s: left out: %v", d.Path, err)
		}
		if !named[d.Name] {
			notes = append(notes, next.warnings[len(before.warnings):]...)
			next.warnings = before.warnings
		}
		if t = next; err == nil {
			t.files = append(slices.Clip(t.files), d)
		}
	}
	t.warnings = append(t.warnings, toolset.LimitNotes(notes, teamNotesMax, "notes on the agents found here; `troupe agents validate` shows more")...)
	return denyCommands(t, untrusted), nil
}

// denyCommands denies the commands of agent files to agents whose own files may not define any: these files
// may come from anyone, so they must not name a command of the user's agents, which would run
// without the hooks of its own agent.
func denyCommands(t agentSet, untrusted []string) agentSet {
	t.definitions = slices.Clone(t.definitions)
	for i, d := range t.definitions {
		if d.Source == "" || !slices.Contains(untrusted, d.Name) {
			continue
		}
		d.Deny = slices.Clone(d.Deny)
		for _, c := range t.commands {
			d.Deny = append(d.Deny, c.Name)
		}
		t.definitions[i] = d
	}
	return t
}

// teamNotesMax is how many notes a run shows about agents that its request does not name.
const teamNotesMax = 3

// namedAgents are the agents that a request names, and those that their files name as delegates, or for handoffs.
func namedAgents(requested []string, files []agentfile.Definition) map[string]bool {
	named := map[string]bool{}
	for open := slices.Clone(requested); len(open) > 0; {
		name := open[0]
		if open = open[1:]; named[name] {
			continue
		}
		named[name] = true
		if i := slices.IndexFunc(files, func(d agentfile.Definition) bool { return d.Name == name }); i >= 0 {
			open = append(append(open, files[i].Delegates...), files[i].Handoffs...)
		}
	}
	return named
}

// withoutOwnServers takes away the MCP servers that a file defines itself, unless its agent is named:
// a run must not start the servers of agents that it may never call.
func withoutOwnServers(d agentfile.Definition, isNamed bool) (rest agentfile.Definition, off []string) {
	if isNamed {
		return d, nil
	}
	d.MCPServers = slices.DeleteFunc(slices.Clone(d.MCPServers), func(s agentfile.MCPServer) bool {
		if s.Config != nil {
			off = append(off, s.Name)
		}
		return s.Config != nil
	})
	return d, off
}
