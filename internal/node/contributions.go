package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/assistant"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/toolset/readresult"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Contributions holds what a program that embeds a node contributes. Another node that takes a run
// over and lacks one of these pauses the run and asks the user.
type Contributions struct {
	// Tools are for every agent whose definition does not exclude them.
	Tools []tool.Tool
	// Agents take precedence over the built-in ones; agent files that a request names take
	// precedence over them.
	Agents []agentfile.Definition
	// Models are clients by PROVIDER/MODEL; they take precedence over the provider of that
	// name.
	Models map[string]model.Client
}

// ErrContribution: a contribution of the program cannot be used.
var ErrContribution = errors.New("node: not usable")

// checkAndComplete checks all fields and fills in the defaults of an agent file. mayHaveAgentFiles means that runs
// may also have agents of files.
func (o Contributions) checkAndComplete(mayHaveAgentFiles bool) (Contributions, error) {
	set, err := tool.NewSet(o.Tools...)
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrContribution, err)
	}
	for _, s := range set.Specs() {
		if slices.Contains(toolset.LoopTools, s.Name) || s.Name == readresult.Name || agentfile.IsBuiltin(s.Name) {
			return o, fmt.Errorf("%w: the tool %s is built in; give yours another name", ErrContribution, s.Name)
		}
	}
	o.Agents = slices.Clone(o.Agents)
	for i, d := range o.Agents {
		if o.Agents[i], err = agentfile.CompleteDefinition(d); err != nil {
			return o, fmt.Errorf("%w: %w", ErrContribution, err)
		}
		if slices.ContainsFunc(o.Agents[:i], func(other agentfile.Definition) bool { return other.Name == d.Name }) {
			return o, fmt.Errorf("%w: two agents are called %s", ErrContribution, d.Name)
		}
	}
	if err := o.checkReferences(set, mayHaveAgentFiles); err != nil {
		return o, err
	}
	for name, c := range o.Models {
		if before, rest, ok := strings.Cut(name, "/"); !ok || before == "" || rest == "" || c == nil {
			return o, fmt.Errorf("%w: the model %q needs a client and a name like PROVIDER/MODEL", ErrContribution, name)
		}
	}
	return o, nil
}

// checkReferences checks that the tools and delegates that agents name exist. Tools of MCP servers are not known yet,
// and delegates are not if they may be in files.
func (o Contributions) checkReferences(set *tool.Set, mayHaveAgentFiles bool) error {
	var tools []string
	for _, s := range set.Specs() {
		tools = append(tools, s.Name)
	}
	var agents []string
	for _, d := range o.Agents {
		agents = append(agents, d.Name)
		for _, c := range d.Commands { // the agents of a run share them
			tools = append(tools, c.Name)
		}
	}
	agents = append(agents, builtinAgents()...)
	for _, d := range o.Agents {
		for _, t := range slices.Concat(d.Tools, d.DisallowedTools) {
			if !agentfile.IsBuiltin(t.Name) && !t.IsRemote() && !strings.Contains(t.Name, "*") && !slices.Contains(tools, t.Name) {
				return fmt.Errorf("%w: agent %s: there is no tool %q%s", ErrContribution, d.Name, t.Name, suggestTool(t.Name, tools))
			}
		}
		for _, name := range d.Delegates {
			if agentfile.IsForeignAgent(name) {
				if err := agentfile.CheckForeignAgent(name); err != nil {
					return fmt.Errorf("%w: agent %s: delegate %w", ErrContribution, d.Name, err)
				}
				continue
			}
			if !mayHaveAgentFiles && !slices.Contains(agents, name) {
				return fmt.Errorf("%w: agent %s: there is no agent %q to delegate to%s", ErrContribution, d.Name, name, didYouMean(name, agents))
			}
		}
		for _, name := range d.Handoffs {
			if !slices.Contains(agents, name) && (!mayHaveAgentFiles || agentfile.IsForeignAgent(name)) {
				return fmt.Errorf("%w: agent %s: there is no agent %q to hand off to%s", ErrContribution, d.Name, name, didYouMean(name, agents))
			}
		}
	}
	return nil
}

// builtinAgents returns the names of troupe's own agents.
func builtinAgents() []string {
	names := []string{assistant.Name, assistant.ExplorerName}
	for _, a := range investigator.BuiltinAgents() {
		names = append(names, a.Name)
	}
	for _, a := range orchestrator.BuiltinAgents() {
		names = append(names, a.Name)
	}
	return names
}

// suggestTool suggests one of the known tools, or troupe's name of a tool that other programs call otherwise.
func suggestTool(name string, known []string) string {
	if ours := agentfile.ToolName(name); agentfile.IsBuiltin(ours) {
		return fmt.Sprintf("; did you mean %q?", ours)
	}
	return cmp.Or(didYouMean(name, known), agentfile.SuggestTool(name))
}

// didYouMean suggests the nearest of the known names.
func didYouMean(name string, known []string) string {
	if near := config.NearestName(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
