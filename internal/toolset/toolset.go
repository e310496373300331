// Package toolset makes the tools of an agent as this node has them: those of its directory,
// restricted ones (shell, http_get, skills), those of MCP servers, commands of agent files,
// and those of the program that embeds the node. The builder of a run uses it to list tools;
// an actor uses it to get the tool set of its task.
package toolset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/toolset/command"
	"github.com/troupe-run/troupe/mailbox"

	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolset/builtin"
	"github.com/troupe-run/troupe/internal/toolset/readresult"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/internal/workspace"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Config of a Builder.
type Config struct {
	// Rules are the operator's rules about tools: they take precedence over what the tools
	// declare.
	Rules []agentfile.ToolRule
	// ProgramTools are tools of the program that embeds the node.
	ProgramTools []tool.Tool
	// Servers is the file in which the operator names MCP servers. Default none.
	Servers string
	// StateDir holds the operator's approvals of MCP servers.
	StateDir string
	// Env reads the environment.
	Env func(string) string
	// Trust decides whose files may define commands to execute.
	Trust trust.Policy
	// Directories are the open directories in which agents work.
	Directories *workspace.Directories
	// Hub starts MCP servers. If it is nil, no server starts, and the pinned tools count.
	Hub *mcpclient.Hub
	// Blobs holds results that were clipped.
	Blobs mailbox.Blobs
	// CallAgent gives a task to an agent of another program and returns its answer, which may be a part of it if there
	// is an error. Default: agents of other programs cannot be called.
	CallAgent func(ctx context.Context, c AgentCall) (string, error)
	// A2AAgents are the names of the agents of the protocol A2A that this node can call, as agent files write them.
	A2AAgents []string
	// CommandEnv returns the variables (NAME=value) of the user's own settings for commands of a run in a directory.
	// Default: there are none.
	CommandEnv func(workspace string) []string
	// Mask hides the secrets of the node in results, and more.
	Mask func(more ...string) *redact.Masker
}

// Builder makes tools. It is safe for concurrent use.
type Builder struct {
	cfg  Config
	mask *redact.Masker // of the node's own secrets
	// reader makes the tool that reads clipped results, once for all sets.
	reader func() (tool.Tool, error)

	mu    sync.Mutex
	specs map[bool][]model.ToolSpec // without a directory, and with one
}

// New returns a Builder.
func New(cfg Config) *Builder {
	reader := func() (tool.Tool, error) { return readresult.Reader(cfg.Blobs) }
	return &Builder{cfg: cfg, mask: cfg.Mask(), reader: sync.OnceValues(reader)}
}

// MakeSet makes the tool set of one agent: the tools of its directory and the commands of its
// agent file. The submission of the agent decided which tools it may call; the set only
// executes them.
func (b *Builder) MakeSet(t spec.Task) (*tool.Set, error) {
	tools, err := b.cfg.Directories.Tools(t.Workspace, t.Writable, fileRules(t.Permissions))
	if err != nil {
		return nil, err
	}
	tools = slices.Clone(tools)
	env := b.envOf(t)
	for _, c := range t.Commands {
		i := slices.IndexFunc(t.Tools, func(s model.ToolSpec) bool { return s.Name == c.Name })
		if i < 0 {
			continue // the agent has lost the tool
		}
		toolSpec := t.Tools[i]
		cmd, err := command.New(command.Config{Name: toolSpec.Name, Description: toolSpec.Description, Command: c.Line,
			Class: toolSpec.Class, Schema: toolSpec.Schema, Poll: toolSpec.Poll, Timeout: time.Duration(c.TimeoutMS) * time.Millisecond, Dir: t.Workspace, Exact: true, Env: env})
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", c.Name, err)
		}
		tools = append(tools, cmd)
	}
	own, err := b.restrictedTools(t, env)
	if err != nil {
		return nil, err
	}
	mask, err := b.maskerOf(t.Workspace)
	if err != nil {
		return nil, err
	}
	memory, err := b.memoryTools(t, mask)
	if err != nil {
		return nil, err
	}
	tools = slices.Concat(tools, own, memory)
	tools = append(tools, b.RemoteTools(t)...)
	tools = append(tools, b.foreignTools(t, mask)...)
	reader, err := b.reader()
	if err != nil {
		return nil, fmt.Errorf("toolset: %w", err)
	}
	set, err := tool.NewSet(slices.Concat(tools, b.programTools(t), []tool.Tool{reader})...)
	if err != nil {
		return nil, fmt.Errorf("toolset: %w", err)
	}
	return set.Masked(mask), nil
}

// envOf returns the variables of the user's own settings, if a command of the user has started the run.
func (b *Builder) envOf(t spec.Task) []string {
	if !slices.ContainsFunc(t.Permissions, func(p spec.Permissions) bool { return p.UserEnv }) {
		return nil
	}
	return b.userEnv(t.Workspace)
}

// userEnv returns the variables of the user's own settings.
func (b *Builder) userEnv(workspace string) []string {
	if b.cfg.CommandEnv == nil {
		return nil
	}
	return b.cfg.CommandEnv(workspace)
}

// maskerOf hides the secrets of this node and those of a directory: values in its .env files are masked like troupe's
// own secrets, whichever tool prints them.
func (b *Builder) maskerOf(dir string) (*redact.Masker, error) {
	if dir == "" {
		return b.mask, nil
	}
	secrets, err := builtin.Secrets(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a directory that was removed has none
		return nil, err
	}
	return b.cfg.Mask(secrets...), nil
}

// ReaderSpec describes the tool that reads clipped results; results exist only if the run
// has tools.
func (b *Builder) ReaderSpec(tools []model.ToolSpec) ([]model.ToolSpec, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	reader, err := b.reader()
	if err != nil {
		return nil, fmt.Errorf("toolset: %w", err)
	}
	return []model.ToolSpec{reader.Spec()}, nil
}

// DirectorySpecs describes the tools of a directory, and those of the program.
func (b *Builder) DirectorySpecs(dir string) ([]model.ToolSpec, error) {
	tools, err := b.cfg.Directories.Tools(dir, WritablePaths(), workspace.FileRules{})
	if err != nil {
		return nil, refuse.Bad("name a directory that can be read", "dir: %v", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.specs[dir != ""] // they are the same for all directories
	if known == nil {
		set, err := tool.NewSet(slices.Concat(tools, b.cfg.ProgramTools)...)
		if err != nil {
			return nil, fmt.Errorf("toolset: %w", err)
		}
		if b.specs == nil {
			b.specs = map[bool][]model.ToolSpec{}
		}
		known = set.Specs()
		b.specs[dir != ""] = known
	}
	return slices.Clone(known), nil
}

// fileRules returns the patterns of permissions that the tools of a directory apply themselves: a search names no file.
func fileRules(list []spec.Permissions) (r workspace.FileRules) {
	r.Hidden, r.Guarded = permission.FilePatterns(list)
	r.Limits = permission.FileLimits(list)
	return r
}

// programTools returns the tools of the program that a task has.
func (b *Builder) programTools(t spec.Task) []tool.Tool {
	return slices.DeleteFunc(slices.Clone(b.cfg.ProgramTools), func(own tool.Tool) bool {
		name := own.Spec().Name
		command := slices.ContainsFunc(t.Commands, func(c spec.Command) bool { return c.Name == name })
		return command || !slices.ContainsFunc(t.Tools, func(s model.ToolSpec) bool { return s.Name == name })
	})
}

// WritablePaths returns the paths that an agent may write in its directory without a question: the report.
func WritablePaths() []string {
	return []string{"report.md", "report.json"}
}
