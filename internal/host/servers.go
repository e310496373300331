package host

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/tool/mcp"
)

// Server is an MCP server that a run would have.
type Server struct {
	mcp.Server
	Trusted bool   // the operator wrote the file, or named it
	Off     string // why it is not used; "": it is
}

// serverFiles finds the servers of a run, in the order in which their names
// count: the file that the client names, agent files, the operator's own file,
// that of the directory. What comes with the directory cannot take a name.
func (h *Host) serverFiles(dir, place, named string, crew []agentfile.Definition) (all []Server, notes []string, err error) {
	add := func(servers []mcp.Server, trusted bool) {
		for _, s := range servers {
			s.Own, s.Flags = trusted && operators(s.Source, dir), h.findFlags(s.Source, dir)
			f := Server{Server: s, Trusted: trusted}
			f.Off = h.pinFiles(&f.Server)
			if i := slices.IndexFunc(all, func(o Server) bool { return o.Name == s.Name }); i >= 0 {
				if all[i].Hash() == s.Hash() {
					continue
				}
				f.Off = "the one of the same name in " + all[i].Source + " goes before it"
			}
			all = append(all, f)
		}
	}
	take := func(path string, f mcp.File, wrong error, trusted bool) {
		if wrong != nil {
			notes = append(notes, wrong.Error())
		}
		notes = append(notes, few(f.Notes, NotesAbout, "notes on "+path+"; `troupe mcp list` shows its servers")...)
		add(f.Servers, trusted)
	}
	if named != "" {
		f, wrong := mcp.ReadBelow(place, named)
		if f.Digest == "" && wrong == nil {
			return nil, nil, bad("name a file that is there", "mcp_config: there is no %s", named)
		}
		if wrong != nil {
			return nil, nil, bad("mend the file", "mcp_config: %v", wrong)
		}
		take(named, f, nil, h.cfg.trustsNamed(named, f.Digest, dir))
	}
	for _, d := range crew {
		servers, more, wrong := inline(d)
		if notes = append(notes, more...); wrong != nil {
			return nil, nil, bad("change mcpServers in "+d.Path, "%v", wrong)
		}
		add(servers, true)
	}
	if h.cfg.Servers != "" {
		f, wrong := mcp.Read(h.cfg.Servers)
		take(h.cfg.Servers, f, wrong, h.cfg.trusts(h.cfg.Servers, f.Digest, dir))
	}
	var held *workdir.Directory
	if dir != "" {
		if held, err = workdir.Hold(dir); err != nil {
			return nil, nil, fmt.Errorf("host: servers: %w", err)
		}
		path := filepath.Join(dir, mcp.FileName)
		f, wrong := mcp.ReadBelow(dir, path)
		take(path, f, wrong, false)
	}
	for i := range all {
		if liesBelow(dir, all[i].Source) {
			all[i].At = held
		}
		h.judge(&all[i], i)
	}
	return all, notes, nil
}

// pinFiles notes the files that the command of a server names, unless it is the
// operator's own, and says why that cannot be done.
func (h *Host) pinFiles(s *mcp.Server) (wrong string) {
	if s.Own {
		return ""
	}
	files, err := s.NamedFiles(ServerDir(s.Source), h.cfg.Env)
	if err != nil {
		return err.Error()
	}
	s.Files = files
	return ""
}

// inline are the servers that an agent file defines.
func inline(d agentfile.Definition) (servers []mcp.Server, notes []string, err error) {
	for _, s := range d.MCPServers {
		if s.Config == nil {
			continue
		}
		one, more, wrong := mcp.Inline(d.Path, s.Name, s.Config)
		if notes = append(notes, more...); wrong != nil {
			return nil, notes, wrong
		}
		if one.Name != "" {
			servers = append(servers, one)
		}
	}
	return servers, notes, nil
}

// judge says why a server is off that the operator has not allowed.
func (h *Host) judge(s *Server, i int) {
	switch {
	case s.Off != "":
		return
	case i >= mcp.ServersMax:
		s.Off = fmt.Sprintf("a run may have %d servers", mcp.ServersMax)
		return
	case s.Trusted:
		return
	}
	switch state, err := h.allowed().State(s.Server); {
	case err != nil:
		s.Off = err.Error()
	case state == mcp.Fresh:
		s.Off = fmt.Sprintf("it was never allowed; it would use %s; `%s` allows it", s.Line(), s.Remedy("allow"))
	case state == mcp.Changed:
		s.Off = fmt.Sprintf("it is not the one that was allowed; it would use %s; `%s` allows it", s.Line(), s.Remedy("allow"))
	}
}

// allowed is what the operator of this node has allowed.
func (h *Host) allowed() mcp.Lock { return mcp.OpenLock(bus.StateDir(h.cfg.StateDir)) }

// Servers are the MCP servers that a run in a directory would have, whether or
// not they are used, and what is to be known of their files. Nothing is started.
func Servers(cfg Config, dir, named, agents string) ([]Server, []string, error) {
	h := &Host{cfg: cfg.withDefaults()}
	h.cfg.ownHand = true
	var crew []agentfile.Definition
	if agents != "" {
		var err error
		if crew, _, err = agentfile.Load(agents); err != nil {
			return nil, nil, bad("`troupe agents validate` shows all that is wrong", "%v", err)
		}
	}
	all, notes, err := h.serverFiles(dir, filepath.Dir(named), named, crew)
	if err != nil {
		return nil, nil, err
	}
	for i := range all { // the user's own hand names the directory, also by a link
		all[i].At = nil
	}
	users, more := h.usersServers(dir, all)
	return append(all, users...), append(notes, more...), nil
}

// usersServers are those of agents that a run finds where the user keeps them. A
// run has them only with their agent, so they take no name of the others.
func (h *Host) usersServers(dir string, others []Server) (all []Server, notes []string) {
	crew, _, broken := agentfile.Find(dir)
	if broken != nil {
		notes = append(notes, "agent files that cannot be read are left out; `troupe agents validate` shows them")
	}
	for _, d := range crew {
		if !h.cfg.trusts(d.Path, d.Digest, dir) {
			d, _ = harmless(d)
		}
		servers, more, wrong := inline(d)
		if notes = append(notes, few(more, NotesAbout, "notes on "+d.Path)...); wrong != nil {
			notes = append(notes, wrong.Error())
			continue
		}
		for _, s := range servers {
			s.Own, s.Flags = operators(s.Source, dir), h.findFlags(s.Source, dir)
			f := Server{Server: s, Trusted: true}
			known := append(slices.Clip(others), all...)
			if i := slices.IndexFunc(known, func(o Server) bool { return o.Name == s.Name }); i >= 0 {
				if known[i].Source == s.Source {
					continue // --agents names it
				}
				f.Off = fmt.Sprintf("only runs with the agent %s have it, in place of the one in %s; `%s` tries it", d.Name, known[i].Source, s.Remedy("test"))
			}
			h.judge(&f, len(known))
			all = append(all, f)
		}
	}
	return all, notes
}

// liesBelow: a file is in the directory of a run, or in one below it.
func liesBelow(dir, source string) bool {
	rel, err := filepath.Rel(dir, source)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}

// operators: a file is not that of the directory of the run, which may come from
// anybody. Where others are the operator has written or named them.
func operators(source, workspace string) bool {
	return workspace == "" || source != filepath.Join(workspace, mcp.FileName)
}

// findFlags are the flags by which the commands of troupe mcp find a file from anywhere.
func (h *Host) findFlags(source, workspace string) []string {
	switch {
	case source == h.cfg.Servers:
		return nil
	case !operators(source, workspace):
		return []string{"--dir", workspace}
	case filepath.Ext(source) == ".md":
		return []string{"--agents", filepath.Dir(source)}
	}
	return []string{"--mcp-config", source}
}

// ServerDir is where a server runs that does not say it: beside its file. Only one
// that the directory of a run itself names runs in that: npx, uvx, python -m and
// make run what they find where they are started, and a repository must not bring it.
func ServerDir(source string) string { return filepath.Dir(source) }
