package runspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// foundServers are the MCP servers of a run, and their tools.
type foundServers struct {
	servers  []spec.Server
	tools    []model.ToolSpec
	warnings []string
}

// findServers gives a run the tools of its MCP servers that are still the approved ones.
func (b *Builder) findServers(req acceptedRequest, t agentSet) (f foundServers, err error) {
	named, place, err := b.cfg.Trust.CheckNamed(req.RunRequest, "mcp_config", req.MCPConfig, b.cfg.Trust.NameablePlaces())
	if err != nil {
		return f, err
	}
	all, notes, err := b.cfg.Tools.FindServers(req.workspace, place, named, t.files)
	if err != nil {
		return f, err
	}
	f.warnings = append(f.warnings, notes...)
	warn := func(format string, args ...any) { f.warnings = append(f.warnings, fmt.Sprintf(format, args...)) }
	var on []toolset.RunServer
	var off []string
	for _, s := range all {
		if s.Off != "" {
			off = append(off, fmt.Sprintf("%s: the MCP server %s is off: %s", s.Source, s.Name, s.Off))
			continue
		}
		on = append(on, s)
	}
	f.warnings = append(f.warnings, toolset.LimitNotes(off, toolset.NotesPerTopic, "MCP servers are off; `troupe mcp list` shows them")...)
	size := 0
	for i, offered := range b.cfg.Tools.ListServerTools(on) {
		for _, text := range offered.Warnings {
			warn("MCP server %s: %s", on[i].Name, text)
		}
		for _, s := range offered.Specs {
			size += len(s.Name) + len(s.Description) + len(s.Schema)
			if size > mcpclient.SpecBytesMax {
				warn("MCP server %s: %s and what follows is left out: the tools of a run's servers may have %d bytes", on[i].Name, s.Name, mcpclient.SpecBytesMax)
				break
			}
			f.tools = append(f.tools, s)
		}
		if len(offered.Specs) > 0 {
			f.servers = append(f.servers, spec.Server{Name: on[i].Name, Source: on[i].Source, Hash: on[i].Hash(), Own: on[i].Own})
		}
	}
	return f, nil
}

// serverGrants say which agents have the tools of servers. allowed and disallowed are the
// lists of the request, with words that match several tools replaced by the names.
type serverGrants struct {
	allowed, disallowed []string
	definitions         []supervisor.Definition
	warnings            []string
}

// grantServers decides which agents get the tools of MCP servers: it expands list entries
// that match several tools, gives an agent file the tools of the servers that the file
// names, and offers all of them to the built-in coordinator.
func grantServers(req acceptedRequest, m modelSelection, t agentSet, f foundServers) (g serverGrants) {
	var all []string
	for _, s := range slices.Concat(t.tools, f.tools) {
		if _, ok := mcpclient.ServerOf(s.Name); ok {
			all = append(all, s.Name)
		}
	}
	g.allowed, g.disallowed = expandNames(req.AllowedTools, all), expandNames(req.DisallowedTools, all)
	for _, d := range t.definitions {
		k := slices.IndexFunc(t.files, func(c agentfile.Definition) bool { return c.Name == d.Name })
		if k >= 0 {
			for _, s := range t.files[k].MCPServers {
				proper := mcpclient.ServerName(s.Name)
				if !slices.ContainsFunc(f.servers, func(has spec.Server) bool { return has.Name == proper }) {
					g.warnings = append(g.warnings, fmt.Sprintf("%s: the MCP server %s is not among those of this run; `troupe mcp list` shows them", t.files[k].Path, s.Name))
				} else if d.Tools != nil {
					d.Tools = append(slices.Clip(d.Tools), toolname.MCPPrefix+proper)
				}
			}
		}
		d.Tools, d.Deny = expandNames(d.Tools, all), expandNames(d.Deny, all)
		if d.Name == coordinatorID && d.Source == "" && d.Offer != nil && !strings.HasPrefix(m.model.Name, provider.Builtin+"/") {
			d.Offer = append(slices.Clip(d.Offer), all...)
		}
		g.definitions = append(g.definitions, d)
	}
	return g
}

// expandNames replaces a word that matches several tools by their names. A word that
// matches none stays.
func expandNames(words, tools []string) []string {
	if len(tools) == 0 {
		return words
	}
	var out []string
	for _, w := range words {
		var meant []string
		for _, t := range tools {
			if mcpclient.Means(w, t) {
				meant = append(meant, t)
			}
		}
		if len(meant) == 0 {
			meant = []string{w}
		}
		for _, t := range meant {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	if words != nil && out == nil {
		return []string{} // an empty list grants none, nil grants all
	}
	return out
}
