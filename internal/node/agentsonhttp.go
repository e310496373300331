package node

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/a2aserver"
	"github.com/troupe-run/troupe/internal/agentprotocol"
	"github.com/troupe-run/troupe/internal/assistant"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/mcpserver"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/supervisor"
)

// agentCatalog lists the agents that a node offers to callers without a directory, in the form of each door.
type agentCatalog struct {
	cfg    Config
	routes *routes.Resolver
}

// listAgents lists the agents that a run without a directory may begin with: those of the program and of
// the user, and the built-in ones.
func (c agentCatalog) listAgents(ctx context.Context) []httpapi.Agent {
	defs, _, err := agentfile.Load(agentfile.UserDirs()...)
	if err != nil {
		c.cfg.Logger.Debug("some agent files of the user are broken", "error", err)
	}
	var list []httpapi.Agent
	model, first, tokens, usd := c.runDefaults(ctx)
	add := func(a httpapi.Agent) {
		if !slices.ContainsFunc(list, func(known httpapi.Agent) bool { return known.Name == a.Name }) {
			a.Default = a.Name == first
			a.RunModel, a.Limits.MaxTokens, a.Limits.MaxBudgetUSD, a.Limits.MaxToolCalls = model, tokens, usd, supervisor.CallsMax
			a.Limits.MaxTurns, a.Limits.TimeoutMS = cmp.Or(a.Limits.MaxTurns, spec.TurnsRoot), cmp.Or(a.Limits.TimeoutMS, spec.SoftDefaultMS)
			list = append(list, a)
		}
	}
	for _, d := range c.cfg.Contributions.Agents {
		add(describeDefinition(d))
	}
	for _, b := range investigator.BuiltinAgents() {
		add(httpapi.Agent{Name: b.Name, Description: b.Description, Tools: b.Tools, Limits: httpapi.AgentLimits{MaxTurns: b.MaxTurns}})
	}
	add(httpapi.Agent{Name: assistant.Name, Description: assistant.Description})
	for _, d := range defs {
		add(describeDefinition(d))
	}
	return list
}

// listA2AAgents lists the agents that are offered by A2A: the same as by the Synadia Agent Protocol.
func (c agentCatalog) listA2AAgents() (list []a2aserver.Agent) {
	for _, a := range c.listExportedAgents() {
		list = append(list, a2aserver.Agent{Name: a.Name, Description: a.Description})
	}
	return list
}

// listToolAgents lists the agents that MCP clients get as tools.
func (c agentCatalog) listToolAgents() []mcpserver.Agent {
	var own []mcpserver.Agent
	for _, d := range c.cfg.Contributions.Agents {
		own = append(own, mcpserver.Agent{Name: d.Name, Description: d.Description})
	}
	list, err := mcpserver.ListAgents(own...)
	if err != nil {
		c.cfg.Logger.Debug("some agent files of the user are broken", "error", err)
	}
	return list
}

// listExportedAgents lists the agents that MCP clients get, too, and the general one.
func (c agentCatalog) listExportedAgents() []agentprotocol.Agent {
	list := []agentprotocol.Agent{{Name: assistant.Name, Description: assistant.Description}}
	for _, a := range c.listToolAgents() {
		if a.Name != assistant.Name {
			list = append(list, agentprotocol.Agent{Name: a.Name, Description: a.Description})
		}
	}
	return list
}

// runDefaults are what holds for a run whose request and whose agent say nothing: its model, its agent and its limits.
func (c agentCatalog) runDefaults(ctx context.Context) (model, agent string, tokens int64, usd float64) {
	choice, err := c.routes.ChooseModel(ctx, "")
	agent = runspec.DefaultAgent(choice.Provider)
	switch {
	case err != nil: // a run says why
		return "", agent, ModelTokens, 0
	case choice.Provider == provider.Builtin:
		return choice.Name(), agent, ScoutTokens, 0
	case choice.Paid:
		return choice.Name(), agent, ModelTokens, config.DefaultUSD
	}
	return choice.Name(), agent, ModelTokens, 0
}

// describeDefinition describes the agent of a definition.
func describeDefinition(d agentfile.Definition) httpapi.Agent {
	a := httpapi.Agent{Name: d.Name, Description: d.Description, Model: d.Model, Tools: toolRefNames(d.Tools), DisallowedTools: toolRefNames(d.DisallowedTools), Delegates: d.Delegates,
		PermissionMode: string(d.PermissionMode), Effort: d.Effort, Temperature: d.Temperature, Constraints: d.Constraints, Criteria: d.Criteria, FailIf: d.FailIf,
		Limits: httpapi.AgentLimits{MaxTurns: d.MaxTurns, TimeoutMS: d.Timeout.Milliseconds(), AgentTokens: d.Budget.Tokens, AgentUSD: d.Budget.USD, AgentShare: d.Budget.Share}}
	if s := d.LoopOptions.Require.Schema; s != "" {
		_ = json.Unmarshal([]byte(s), &a.OutputSchema) // the loader has parsed it
	}
	return a
}

// toolRefNames are the names of tools, with the part of them that is meant; nil stays nil.
func toolRefNames(refs []agentfile.ToolRef) []string {
	if refs == nil {
		return nil
	}
	list := make([]string, len(refs))
	for i, r := range refs {
		list[i] = r.String()
	}
	return list
}
