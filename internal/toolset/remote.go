package toolset

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// serverWait is how long the opening of a run waits for its MCP servers: less than a client
// waits for its answer. A slower server continues to start.
const serverWait = 6 * time.Second

// OfferedTools is the result of asking one server for its tools.
type OfferedTools struct {
	Specs    []model.ToolSpec
	Warnings []string
}

// ListServerTools asks all servers at once for their tools. Without a hub it starts none, and the
// pinned tools count.
func (b *Builder) ListServerTools(on []RunServer) []OfferedTools {
	out := make([]OfferedTools, len(on))
	ctx, cancel := context.WithTimeout(context.Background(), serverWait)
	defer cancel()
	var all sync.WaitGroup
	for i, s := range on {
		all.Go(func() { out[i] = b.listTools(ctx, s) })
	}
	all.Wait()
	return out
}

func (b *Builder) listTools(ctx context.Context, s RunServer) OfferedTools {
	var out OfferedTools
	note := func(format string, args ...any) { out.Warnings = append(out.Warnings, fmt.Sprintf(format, args...)) }
	var v mcpclient.Verdict
	var err error
	if b.cfg.Hub == nil {
		v, err = b.approvedServers().Pinned(s.Server)
	} else {
		var now mcpclient.Listing
		now, err = b.cfg.Hub.List(ctx, s.Server, ServerDir(s.Source))
		slow := errors.Is(err, context.DeadlineExceeded)
		switch {
		case err == nil:
			for _, why := range now.Refused {
				note("left out: %s", why)
			}
			v, err = b.approvedServers().Admit(s.Server, now)
		case slow:
			if v, err = b.approvedServers().Pinned(s.Server); len(v.Tools) > 0 {
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
	out.Specs = v.On()
	if v.First && len(v.Tools) > 0 {
		note("first use: its %d tools are pinned as they are now; `%s` shows them", len(v.Tools), s.Remedy("test"))
	}
	for _, t := range v.Off() {
		note("%s is off: it is %s; `%s` allows what there is now", t.Spec.Name, offBecause[t.State], s.Remedy("allow"))
	}
	return out
}

var offBecause = map[mcpclient.State]string{mcpclient.Fresh: "new since the server was allowed", mcpclient.Changed: "not the tool that was allowed", mcpclient.Gone: "no longer available"}

// RemoteTools returns the tools of a task that MCP servers provide.
func (b *Builder) RemoteTools(t spec.Task) []tool.Tool {
	var tools []tool.Tool
	// one descriptor for all
	hold := sync.OnceValues(func() (*workdir.HeldDirectory, error) { return workdir.Hold(t.Workspace) })
	for _, s := range t.Servers {
		find := func() (mcpclient.Server, error) { return b.CurrentServer(s, t.Workspace) }
		if workdir.IsBelow(t.Workspace, s.Source) {
			held, err := hold()
			find = findHeld(held, err, find)
		}
		for _, toolSpec := range t.Tools {
			if s.Has(toolSpec.Name) {
				tools = append(tools, b.cfg.Hub.Tool(toolSpec, ServerDir(s.Source), find))
			}
		}
	}
	return tools
}

// findHeld finds a server of the directory of a run only while the directory at that path
// is the one held open: a directory that has replaced it starts no program. holdErr is the
// reason why no directory is held.
func findHeld(held *workdir.HeldDirectory, holdErr error, find func() (mcpclient.Server, error)) func() (mcpclient.Server, error) {
	return func() (mcpclient.Server, error) {
		if holdErr != nil {
			return mcpclient.Server{}, fmt.Errorf("toolset: the server was not started: %w", holdErr)
		}
		at, err := held.Open()
		if err != nil {
			return mcpclient.Server{}, fmt.Errorf("toolset: the server was not started: %w", err)
		}
		_ = at.Close()
		def, err := find()
		def.At = held
		return def, err
	}
}

// CurrentServer returns the current definition of a server of a run in a directory. A
// server that does not belong to the operator, both here and where the run began, must
// still be the one that the operator has approved.
func (b *Builder) CurrentServer(s spec.Server, workspace string) (mcpclient.Server, error) {
	def, digest, err := ReadServer(s)
	if err != nil {
		return def, err
	}
	def.Own, def.Flags = s.Own && isOperatorFile(s.Source, workspace) && b.cfg.Trust.TrustsNamed(s.Source, digest, workspace), b.findFlags(s.Source, workspace)
	if def.Own {
		def.UserEnv = b.userEnv(workspace)
		return def, nil
	}
	if wrong := b.pinFiles(&def); wrong != "" {
		return def, fmt.Errorf("%w: %s", mcpclient.ErrConfig, wrong)
	}
	switch state, err := b.approvedServers().State(def); {
	case err != nil:
		return def, err
	case state != mcpclient.Allowed:
		return def, fmt.Errorf("%w: the server %s is not the one that was allowed; `%s` allows it", mcpclient.ErrChanged, def.Name, def.Remedy("allow"))
	}
	return def, nil
}

// ReadServer reads again how to reach a server: the definition that a run began with may be
// gone, or may have changed. digest is that of the file.
func ReadServer(s spec.Server) (def mcpclient.Server, digest string, err error) {
	if filepath.Ext(s.Source) != ".md" {
		file, err := mcpclient.Read(s.Source)
		if def, found := mcpclient.Find(file, s.Name, s.Hash); found == nil || err == nil {
			return def, file.Digest, found
		}
		return mcpclient.Server{}, "", err
	}
	raw, err := safefile.Read(s.Source, agentfile.FileBytesMax)
	if err != nil {
		return mcpclient.Server{}, "", fmt.Errorf("%w: this node cannot read the agent file that names the server %s: %w", mcpclient.ErrConfig, s.Name, err)
	}
	d, _, err := agentfile.Parse(s.Source, raw)
	var file mcpclient.File
	for _, c := range d.MCPServers {
		if one, _, wrong := mcpclient.Inline(s.Source, c.Name, c.Config); c.Config != nil && wrong == nil && one.Name != "" {
			file.Servers = append(file.Servers, one)
		}
	}
	if err != nil {
		return mcpclient.Server{}, "", err
	}
	def, err = mcpclient.Find(file, s.Name, s.Hash)
	return def, agentfile.ContentDigest(raw), err
}
