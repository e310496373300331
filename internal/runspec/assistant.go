package runspec

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/assistant"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/toolset/shell"
	"github.com/troupe-run/troupe/internal/toolset/skill"
	"github.com/troupe-run/troupe/supervisor"
)

// DefaultAgent is the agent of a request that names none: the built-in model can play only its own
// investigation, and any other model gets the general agent.
func DefaultAgent(modelProvider string) string {
	if modelProvider == provider.Builtin {
		return coordinatorID
	}
	return assistant.Name
}

// assistantTools are the rights of the general agent: all tools of the run, and with a directory the tools that an
// agent has only if it names them.
func assistantTools(req acceptedRequest) []string {
	if req.workspace == "" {
		return []string{"*"}
	}
	return []string{"*", shell.Name, skill.Name}
}

// addAssistant adds the general agent to a run that begins with it. It may delegate to all agents, the built-in
// investigators too.
func (r *agentResolver) addAssistant(t agentSet) (agentSet, error) {
	if t.root != assistant.Name && !slices.Contains(r.req.agents, assistant.Name) {
		return t, nil
	}
	general := supervisor.Definition{Name: assistant.Name, Description: assistant.Description, System: assistant.Prompt(watcherOf(r.req)),
		Tools: assistantTools(r.req), OnlyNamed: true}
	t, general, err := r.addSkills(t, general, agentfile.Definition{})
	if err != nil {
		return t, err
	}
	t.definitions = append(t.definitions, general)
	return t, nil
}

// watcherOf says which people can answer the questions of a run.
func watcherOf(req acceptedRequest) assistant.Watcher {
	switch {
	case req.options.Unattended:
		return assistant.Nobody
	case req.Interactive:
		return assistant.AtTerminal
	}
	return assistant.Later
}

// addExplorer adds the agent that searches to a run that begins with it or with the general agent, unless the directory
// or the user has an agent of that name. It needs a directory.
func addExplorer(t agentSet, req acceptedRequest) agentSet {
	if t.root != assistant.Name && t.root != assistant.ExplorerName || req.workspace == "" || t.hasAgent(assistant.ExplorerName) || t.isBroken(assistant.ExplorerName) {
		return t
	}
	t.definitions = append(slices.Clone(t.definitions), supervisor.Definition{Name: assistant.ExplorerName, Description: assistant.ExplorerDescription,
		System: assistant.ExplorerPrompt, Tools: assistant.ExplorerTools(), Limits: spec.Limits{Turns: assistant.ExplorerTurns}, Delegates: []string{}})
	return t
}
