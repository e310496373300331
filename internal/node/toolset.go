package node

import (
	"os"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/control/runimport"
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
		Directories: dirs, Hub: hub, Blobs: blobs, Mask: c.newMasker, CommandEnv: c.envOfCommands, CallAgent: call, A2AAgents: c.a2aNames()}
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
func (n *Node) assembleBuilders() {
	var blobs mailbox.Blobs
	if n.blobs != nil {
		blobs = n.blobs
	}
	n.a2a = a2aclient.New(a2aclient.Config{Agents: n.cfg.A2AAgents, Env: n.cfg.Env})
	n.toolset = toolset.New(n.cfg.toolsetConfig(n.directories, n.mcpHub, blobs, agentCaller(n, n.a2a)))
	cfg := runspec.Config{Routes: n.routes, Charges: n.cfg.DelegateCharges, Recordings: n.recordings, Model: n.cfg.Model, Trust: n.cfg.trustPolicy(), Tools: n.toolset,
		Agents: n.cfg.Contributions.Agents, Hooks: n.cfg.Hooks, Permissions: n.cfg.Permissions, UserRules: n.cfg.userRules(), ClaudeHome: n.cfg.ClaudeHome, Env: n.cfg.Env, SearchParentDirs: n.cfg.SearchParentDirs, Mask: n.mask, Blobs: blobs, Machine: n.cfg.Machine}
	for _, t := range n.cfg.Contributions.Tools {
		cfg.OwnTools = append(cfg.OwnTools, t.Spec().Name)
	}
	if n.logOwner != nil && n.embedded == nil && !n.cfg.NoActors {
		cfg.Pools = &runspec.NodePools{Exists: n.logOwner.HasPool, Serving: n.logOwner.ServingNodes}
	}
	n.builder = runspec.New(cfg)
}

// buildRun makes the first entry of a run from a client's request.
func (n *Node) buildRun(r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
	return n.builder.Build(r)
}

// withRestore adds what decides about restored and forked runs.
func withRestore(n *Node, c control.Config) control.Config {
	c.CheckRestored = func(o supervisor.Opened, named client.RunRequest) error {
		return runspec.CheckRestored(n.builder, o, named)
	}
	c.CheckRestoredChange = func(o supervisor.Opened, named client.RunRequest, change runimport.RecordedChange) error {
		if change.Limits != nil {
			return runspec.CheckSetLimits(o, *change.Limits)
		}
		if change.Tools != nil {
			return runspec.CheckAddedTools(n.builder, o, change.Tools)
		}
		return runspec.CheckSetModel(n.builder, o, named, change.Model, change.Nano)
	}
	c.PlaceRestored = func(named client.RunRequest) (string, string, error) { return runspec.PlaceRestored(n.builder, named) }
	c.ForkModel = func(o supervisor.Opened, named client.RunRequest) (*agent.ModelSet, int64, error) {
		return runspec.ForkModel(n.builder, o, named)
	}
	c.ParseNarrowing = runspec.ParseNarrowing
	if n.embedded == nil { // nodes of several machines may share the server
		c.NarrowOn = (&machineAsker{node: n}).narrow
	}
	c.FindTools = func(o supervisor.Opened, names []string) ([]model.ToolSpec, map[string]string, error) {
		return runspec.FindTools(n.builder, o, names)
	}
	return c
}

// SettingsPlace is how nodes report a settings file of their machine: HOST:FILE; "" for no file.
func SettingsPlace(file string) string {
	if file == "" {
		return ""
	}
	host, _ := os.Hostname() // empty without one
	return host + ":" + file
}

// userRules returns the reader of the permission rules of the user who runs the node; nil: it has none.
func (c Config) userRules() *runspec.UserRules {
	if c.UserSettings == "" {
		return nil
	}
	return runspec.OpenUserRules(c.UserSettings)
}
