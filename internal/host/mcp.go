package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/tool/mcp"
)

// serverWait is how long the opening of a run waits for its MCP servers: less
// than a client waits for its answer. What is slower goes on starting.
const serverWait = 6 * time.Second

// servers gives a run the tools of its MCP servers: those that are what the
// operator has allowed.
func (h *Host) servers(o *supervisor.Opened, r *client.RunRequest, crew []agentfile.Definition, a *client.RunAccepted) error {
	named, place, err := h.placed("mcp_config", r.MCPConfig, h.nameable())
	if err != nil {
		return err
	}
	all, notes, err := h.serverFiles(o.Workspace, place, named, crew)
	if err != nil {
		return err
	}
	a.Notes = append(a.Notes, notes...)
	note := func(format string, args ...any) { a.Notes = append(a.Notes, fmt.Sprintf(format, args...)) }
	var on []Server
	var off []string
	for _, s := range all {
		if s.Off != "" {
			off = append(off, fmt.Sprintf("%s: the MCP server %s is off: %s", s.Source, s.Name, s.Off))
			continue
		}
		on = append(on, s)
	}
	a.Notes = append(a.Notes, few(off, NotesAbout, "MCP servers are off; `troupe mcp list` shows them")...)
	size := 0
	for i, found := range h.ask(on) {
		for _, text := range found.notes {
			note("MCP server %s: %s", on[i].Name, text)
		}
		for _, spec := range found.specs {
			size += len(spec.Name) + len(spec.Description) + len(spec.Schema)
			if size > mcp.SpecBytesMax {
				note("MCP server %s: %s and what follows is left out: the tools of a run's servers may have %d bytes", on[i].Name, spec.Name, mcp.SpecBytesMax)
				break
			}
			o.Tools = append(o.Tools, spec)
		}
		if len(found.specs) > 0 {
			o.Servers = append(o.Servers, agent.Server{Name: on[i].Name, Source: on[i].Source, Hash: on[i].Hash(), Own: on[i].Own})
		}
	}
	h.share(o, r, crew, note)
	return nil
}

// offered is what came of asking one server.
type offered struct {
	specs []model.ToolSpec
	notes []string
}

// ask asks all servers at once. Without a hub nothing is started, and what was
// pinned counts.
func (h *Host) ask(on []Server) []offered {
	out := make([]offered, len(on))
	ctx, cancel := context.WithTimeout(context.Background(), serverWait)
	defer cancel()
	var all sync.WaitGroup
	for i, s := range on {
		all.Go(func() { out[i] = h.askOne(ctx, s) })
	}
	all.Wait()
	return out
}

func (h *Host) askOne(ctx context.Context, s Server) offered {
	var out offered
	note := func(format string, args ...any) { out.notes = append(out.notes, fmt.Sprintf(format, args...)) }
	var v mcp.Verdict
	var err error
	if h.hub == nil {
		v, err = h.allowed().Pinned(s.Server)
	} else {
		var now mcp.Listing
		now, err = h.hub.List(ctx, s.Server, ServerDir(s.Source))
		slow := errors.Is(err, context.DeadlineExceeded)
		switch {
		case err == nil:
			for _, why := range now.Refused {
				note("left out: %s", why)
			}
			v, err = h.allowed().Admit(s.Server, now)
		case slow:
			if v, err = h.allowed().Pinned(s.Server); len(v.Tools) > 0 {
				note("it has not answered within %s; its tools are as they were allowed", serverWait)
			} else {
				note("it has not answered within %s, so its tools are left out; `%s` waits longer", serverWait, s.Remedy("test"))
			}
		}
	}
	if err != nil {
		note("its tools are left out: %v", err)
		return out
	}
	out.specs = v.On()
	if v.First && len(v.Tools) > 0 {
		note("first use: its %d tools are pinned as they are now; `%s` shows them", len(v.Tools), s.Remedy("test"))
	}
	for _, t := range v.Off() {
		note("%s is off: it is %s; `%s` allows what there is now", t.Spec.Name, offBecause[t.State], s.Remedy("allow"))
	}
	return out
}

var offBecause = map[mcp.State]string{mcp.Fresh: "new since the server was allowed", mcp.Changed: "not the tool that was allowed", mcp.Gone: "not there any more"}

// share says which agents have the tools of servers: words of lists that mean
// several become the names, an agent file that names servers has theirs, and the
// built-in coordinator is told of all of them.
func (h *Host) share(o *supervisor.Opened, r *client.RunRequest, crew []agentfile.Definition, note func(string, ...any)) {
	var all []string
	for _, s := range o.Tools {
		if _, ok := mcp.ServerOf(s.Name); ok {
			all = append(all, s.Name)
		}
	}
	r.AllowedTools, r.DisallowedTools = expand(r.AllowedTools, all), expand(r.DisallowedTools, all)
	for i := range o.Definitions {
		d := &o.Definitions[i]
		k := slices.IndexFunc(crew, func(c agentfile.Definition) bool { return c.Name == d.Name })
		if k >= 0 {
			for _, s := range crew[k].MCPServers {
				proper := mcp.ServerName(s.Name)
				if !slices.ContainsFunc(o.Servers, func(has agent.Server) bool { return has.Name == proper }) {
					note("%s: the MCP server %s is not among those of this run; `troupe mcp list` shows them", crew[k].Path, s.Name)
				} else if d.Tools != nil {
					d.Tools = append(d.Tools, "mcp__"+proper)
				}
			}
		}
		d.Tools, d.Deny = expand(d.Tools, all), expand(d.Deny, all)
		if d.Name == coordinatorID && d.Source == "" && d.Offer != nil && !strings.HasPrefix(o.Model.Name, pick.Builtin+"/") {
			d.Offer = append(slices.Clip(d.Offer), all...)
		}
	}
}

// expand puts the names of tools where a word means several. A word that means
// none stays.
func expand(words, tools []string) []string {
	if len(tools) == 0 {
		return words
	}
	var out []string
	for _, w := range words {
		var meant []string
		for _, t := range tools {
			if mcp.Means(w, t) {
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
		return []string{} // none is not all
	}
	return out
}

// remote are the tools of a task that MCP servers have.
func (h *Host) remote(t agent.Task) []tool.Tool {
	var tools []tool.Tool
	hold := sync.OnceValues(func() (*workdir.Directory, error) { return workdir.Hold(t.Workspace) }) // one descriptor for all
	for _, s := range t.Servers {
		find := func() (mcp.Server, error) { return h.found(s, t.Workspace) }
		if liesBelow(t.Workspace, s.Source) {
			held, err := hold()
			find = findHeld(held, err, find)
		}
		for _, spec := range t.Tools {
			if s.Has(spec.Name) {
				tools = append(tools, h.hub.Tool(spec, ServerDir(s.Source), find))
			}
		}
	}
	return tools
}

// findHeld finds a server of the directory of a run while that is the directory which
// is held: what has taken its place brings no program. holdErr is why none is.
func findHeld(held *workdir.Directory, holdErr error, find func() (mcp.Server, error)) func() (mcp.Server, error) {
	return func() (mcp.Server, error) {
		if holdErr != nil {
			return mcp.Server{}, fmt.Errorf("host: the server was not started: %w", holdErr)
		}
		at, err := held.Open()
		if err != nil {
			return mcp.Server{}, fmt.Errorf("host: the server was not started: %w", err)
		}
		_ = at.Close()
		def, err := find()
		def.At = held
		return def, err
	}
}

// found is the server of a run in a directory, as it is now. One that is not the
// operator's, here and where the run began, must still be the one that the operator
// has allowed.
func (h *Host) found(s agent.Server, workspace string) (mcp.Server, error) {
	def, digest, err := serverOf(s)
	if err != nil {
		return def, err
	}
	def.Own, def.Flags = s.Own && operators(s.Source, workspace) && h.cfg.trustsNamed(s.Source, digest, workspace), h.findFlags(s.Source, workspace)
	if def.Own {
		return def, nil
	}
	if wrong := h.pinFiles(&def); wrong != "" {
		return def, fmt.Errorf("%w: %s", mcp.ErrConfig, wrong)
	}
	switch state, err := h.allowed().State(def); {
	case err != nil:
		return def, err
	case state != mcp.Allowed:
		return def, fmt.Errorf("%w: the server %s is not the one that was allowed; `%s` allows it", mcp.ErrChanged, def.Name, def.Remedy("allow"))
	}
	return def, nil
}

// serverOf reads again how a server is reached: what a run was begun with may
// be gone, or may be another. digest is that of the file.
func serverOf(s agent.Server) (def mcp.Server, digest string, err error) {
	if filepath.Ext(s.Source) != ".md" {
		file, err := mcp.Read(s.Source)
		if def, found := mcp.Find(file, s.Name, s.Hash); found == nil || err == nil {
			return def, file.Digest, found
		}
		return mcp.Server{}, "", err
	}
	raw, err := safefile.Read(s.Source, agentfile.FileBytesMax)
	if err != nil {
		return mcp.Server{}, "", fmt.Errorf("%w: this node cannot read the agent file that names the server %s: %w", mcp.ErrConfig, s.Name, err)
	}
	d, _, err := agentfile.Parse(s.Source, raw)
	var file mcp.File
	for _, c := range d.MCPServers {
		if one, _, wrong := mcp.Inline(s.Source, c.Name, c.Config); c.Config != nil && wrong == nil && one.Name != "" {
			file.Servers = append(file.Servers, one)
		}
	}
	if err != nil {
		return mcp.Server{}, "", err
	}
	def, err = mcp.Find(file, s.Name, s.Hash)
	return def, agentfile.Digest(raw), err
}
