package node

import (
	"path/filepath"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/workspace"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// MCPServer is an MCP server that a run would have.
type MCPServer = toolset.RunServer

// newToolset makes the builder of agents' tools for a node that does not run.
func (c Config) newToolset() *toolset.Builder {
	return toolset.New(c.toolsetConfig(nil, nil, nil, nil))
}

func (c Config) toolsetConfig(dirs *workspace.Directories, hub *mcpclient.Hub, blobs mailbox.Blobs, call foreignCall) toolset.Config {
	return toolset.Config{Rules: c.Tools, ProgramTools: c.Contributions.Tools, Servers: c.Servers, StateDir: c.StateDir, Env: c.Env, Trust: c.trustPolicy(),
		Directories: dirs, Hub: hub, Blobs: blobs, Mask: c.newMasker, CommandEnv: c.envOfCommands, CallAgent: call}
}

// OptInTools returns the tools that a run on a node with this configuration has only if they
// are named.
func OptInTools(cfg Config) ([]model.ToolSpec, error) {
	return cfg.withDefaults().newToolset().NamedOnlySpecs()
}

// ListServers returns the MCP servers that a run in a directory would have: see
// toolset.Builder.Servers.
func ListServers(cfg Config, dir, named, agents string) ([]MCPServer, []string, error) {
	cfg = cfg.withDefaults()
	cfg.requestsFromUser = true
	return cfg.newToolset().ListServers(dir, named, agents)
}

// ServerDir is toolset.ServerDir.
func ServerDir(source string) string { return toolset.ServerDir(source) }

// assembleBuilders makes the builders of runs and of their agents' tools.
func (h *Node) assembleBuilders() {
	var blobs mailbox.Blobs
	if h.blobs != nil {
		blobs = h.blobs
	}
	h.toolset = toolset.New(h.cfg.toolsetConfig(h.directories, h.mcpHub, blobs, agentCaller(h)))
	cfg := runspec.Config{Routes: h.routes, Recordings: h.recordings, Model: h.cfg.Model, Trust: h.cfg.trustPolicy(), Tools: h.toolset,
		Agents: h.cfg.Contributions.Agents, Hooks: h.cfg.Hooks, Permissions: h.cfg.Permissions, ProjectRules: h.cfg.projectRules(), ClaudeHome: h.cfg.ClaudeHome, Env: h.cfg.Env, SearchParentDirs: h.cfg.SearchParentDirs, Mask: h.mask, Blobs: blobs, Machine: h.cfg.Machine}
	for _, t := range h.cfg.Contributions.Tools {
		cfg.OwnTools = append(cfg.OwnTools, t.Spec().Name)
	}
	if h.logOwner != nil && h.embedded == nil && !h.cfg.NoActors {
		cfg.Pools = &runspec.NodePools{Exists: h.logOwner.HasPool, Serving: h.logOwner.ServingNodes}
	}
	h.builder = runspec.New(cfg)
}

// buildRun makes the first entry of a run from a client's request.
func (h *Node) buildRun(r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
	return h.builder.Build(r)
}

// checkRestored refuses a run from a file that has more rights than a new one would get here.
func (h *Node) checkRestored(o supervisor.Opened, named client.RunRequest) error {
	return runspec.CheckRestored(h.builder, o, named)
}

// projectRules returns the function that reads the user's rules for a directory; nil for a node that does
// not act for the user of this machine.
func (c Config) projectRules() func(dir string) (spec.Permissions, error) {
	if !c.UserDirs {
		return nil
	}
	return func(dir string) (spec.Permissions, error) {
		return agentfile.LoadProject(filepath.Dir(config.UserFile()), dir)
	}
}
