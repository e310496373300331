package toolset

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/internal/workdir"
)

// RunServer is an MCP server that a run would have.
type RunServer struct {
	mcpclient.Server
	Trusted bool   // the operator wrote the file, or named it
	Off     string // the reason why it is not used; "": it is used
}

// FindServers finds the servers of a run, in order of precedence: the file that the client
// names, agent files, the operator's own file, that of the directory. A server of the
// directory cannot take the name of another.
func (b *Builder) FindServers(dir, place, named string, crew []agentfile.Definition) (all []RunServer, notes []string, err error) {
	add := func(servers []mcpclient.Server, trusted bool) {
		for _, s := range servers {
			s.Own, s.Flags = trusted && isOperatorFile(s.Source, dir), b.findFlags(s.Source, dir)
			if s.Own {
				s.UserEnv = b.userEnv(dir)
			}
			f := RunServer{Server: s, Trusted: trusted}
			f.Off = b.pinFiles(&f.Server)
			if i := slices.IndexFunc(all, func(o RunServer) bool { return o.Name == s.Name }); i >= 0 {
				if all[i].Hash() == s.Hash() {
					continue
				}
				f.Off = "the one of the same name in " + all[i].Source + " takes precedence"
			}
			all = append(all, f)
		}
	}
	take := func(path string, f mcpclient.File, wrong error, trusted bool) {
		if wrong != nil {
			notes = append(notes, wrong.Error())
		}
		notes = append(notes, LimitNotes(f.Notes, NotesPerTopic, "notes on "+path+"; `troupe mcp list` shows its servers")...)
		add(f.Servers, trusted)
	}
	if named != "" {
		f, wrong := mcpclient.ReadBelow(place, named)
		if f.Digest == "" && wrong == nil {
			return nil, nil, refuse.Bad("name an existing file", "mcp_config: there is no %s", named)
		}
		if wrong != nil {
			return nil, nil, refuse.Bad("fix the file", "mcp_config: %v", wrong)
		}
		take(named, f, nil, b.cfg.Trust.TrustsNamed(named, f.Digest, dir))
	}
	for _, d := range crew {
		servers, more, wrong := inlineServers(d)
		if notes = append(notes, more...); wrong != nil {
			return nil, nil, refuse.Bad("change mcpServers in "+d.Path, "%v", wrong)
		}
		add(servers, true)
	}
	if b.cfg.Servers != "" {
		f, wrong := mcpclient.Read(b.cfg.Servers)
		take(b.cfg.Servers, f, wrong, b.cfg.Trust.TrustsFile(b.cfg.Servers, f.Digest, dir))
	}
	var held *workdir.HeldDirectory
	if dir != "" {
		if held, err = workdir.Hold(dir); err != nil {
			return nil, nil, fmt.Errorf("toolset: servers: %w", err)
		}
		path := filepath.Join(dir, mcpclient.FileName)
		f, wrong := mcpclient.ReadBelow(dir, path)
		take(path, f, wrong, false)
	}
	for i := range all {
		if workdir.IsBelow(dir, all[i].Source) {
			all[i].At = held
		}
		b.checkApproval(&all[i], i)
	}
	return all, notes, nil
}

// pinFiles records the files that the command of a server names, unless the server is the
// operator's own, and returns the reason if that cannot be done.
func (b *Builder) pinFiles(s *mcpclient.Server) (wrong string) {
	if s.Own {
		return ""
	}
	files, err := s.NamedFiles(ServerDir(s.Source), b.cfg.Env)
	if err != nil {
		return err.Error()
	}
	s.Files = files
	return ""
}

// inlineServers returns the servers that an agent file defines.
func inlineServers(d agentfile.Definition) (servers []mcpclient.Server, notes []string, err error) {
	for _, s := range d.MCPServers {
		if s.Config == nil {
			continue
		}
		one, more, wrong := mcpclient.Inline(d.Path, s.Name, s.Config)
		if notes = append(notes, more...); wrong != nil {
			return nil, notes, wrong
		}
		if one.Name != "" {
			servers = append(servers, one)
		}
	}
	return servers, notes, nil
}

// checkApproval sets the reason why a server is off that the operator has not approved.
func (b *Builder) checkApproval(s *RunServer, i int) {
	switch {
	case s.Off != "":
		return
	case i >= mcpclient.ServersMax:
		s.Off = fmt.Sprintf("a run may have %d servers", mcpclient.ServersMax)
		return
	case s.Trusted:
		return
	}
	switch state, err := b.approvedServers().State(s.Server); {
	case err != nil:
		s.Off = err.Error()
	case state == mcpclient.Fresh:
		s.Off = fmt.Sprintf("it was never allowed; it would use %s; `%s` allows it", s.Line(), s.Remedy("allow"))
	case state == mcpclient.Changed:
		s.Off = fmt.Sprintf("it is not the one that was allowed; it would use %s; `%s` allows it", s.Line(), s.Remedy("allow"))
	}
}

// approvedServers returns what the operator of this node has approved.
func (b *Builder) approvedServers() mcpclient.Lock {
	return mcpclient.OpenLock(statedir.StateDir(b.cfg.StateDir))
}

// ListServers returns the MCP servers that a run in a directory would have, used or not, and
// warnings about their files. It starts none of them.
func (b *Builder) ListServers(dir, named, agents string) ([]RunServer, []string, error) {
	var crew []agentfile.Definition
	var broken error
	if agents != "" {
		crew, _, broken = agentfile.Load(agents)
		if err := agentfile.ErrorsFor(broken); err != nil {
			return nil, nil, refuse.Bad("`troupe agents validate DIR` shows all that is wrong", "%s", agentfile.Sentences(err))
		}
	}
	if dir != "" {
		dir = workdir.Real(dir)
	}
	if named != "" {
		named = workdir.Real(named)
	}
	all, notes, err := b.FindServers(dir, filepath.Dir(named), named, crew)
	if err != nil {
		return nil, nil, err
	}
	for i := range all { // the user names the directory, also by a link
		all[i].At = nil
	}
	if broken != nil {
		notes = append(notes, "left out: "+agentfile.Sentences(broken))
	}
	users, more := b.userServers(dir, all)
	return append(all, users...), append(notes, more...), nil
}

// userServers returns the servers of agents that a run finds in the user's agent
// directories. A run has them only with their agent, so they take no name from the others.
func (b *Builder) userServers(dir string, others []RunServer) (all []RunServer, notes []string) {
	crew, _, broken := agentfile.LoadWorkspace(dir)
	if broken != nil {
		notes = append(notes, "agent files that cannot be read are left out; `troupe agents validate` shows them")
	}
	for _, d := range crew {
		if !b.cfg.Trust.TrustsFile(d.Path, d.Digest, dir) {
			d, _ = trust.StripExecutable(d)
		}
		servers, more, wrong := inlineServers(d)
		if notes = append(notes, LimitNotes(more, NotesPerTopic, "notes on "+d.Path)...); wrong != nil {
			notes = append(notes, wrong.Error())
			continue
		}
		for _, s := range servers {
			s.Own, s.Flags = isOperatorFile(s.Source, dir), b.findFlags(s.Source, dir)
			f := RunServer{Server: s, Trusted: true}
			known := append(slices.Clip(others), all...)
			if i := slices.IndexFunc(known, func(o RunServer) bool { return o.Name == s.Name }); i >= 0 {
				if known[i].Source == s.Source {
					continue // --agents names it
				}
				f.Off = fmt.Sprintf("only runs with the agent %s have it, in place of the one in %s; `%s` tries it", d.Name, known[i].Source, s.Remedy("test"))
			}
			b.checkApproval(&f, len(known))
			all = append(all, f)
		}
	}
	return all, notes
}

// isOperatorFile reports whether a file is the operator's: the server file of the run's
// directory may come from anyone, and the operator has written or named all others.
func isOperatorFile(source, workspace string) bool {
	return workspace == "" || source != filepath.Join(workspace, mcpclient.FileName)
}

// findFlags returns the flags with which the commands of troupe mcp find a file from
// anywhere.
func (b *Builder) findFlags(source, workspace string) []string {
	switch {
	case source == b.cfg.Servers:
		return nil
	case !isOperatorFile(source, workspace):
		return []string{"--dir", workspace}
	case filepath.Ext(source) == ".md":
		return []string{"--agents", filepath.Dir(source)}
	}
	return []string{"--mcp-config", source}
}

// ServerDir returns the directory of a server that names none: that of its file. Only a
// server that the run's directory itself names starts in the run's directory: npx, uvx,
// python -m and make run what they find in the directory where they start, and a repository
// must not supply it.
func ServerDir(source string) string { return filepath.Dir(source) }
