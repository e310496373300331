package runspec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/agentmemory"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/prompt"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// addMemory gives an agent the memory that its file asks for: its tools, and the list of its notes in its prompt. The
// list is part of the recorded prompt, so that a replay needs no notes.
func addMemory(cfg *Config, t agentSet, def supervisor.Definition, req acceptedRequest, d agentfile.Definition) (agentSet, supervisor.Definition, error) {
	if d.Memory == "" {
		return t, def, nil
	}
	if why := whyNoMemory(cfg, d.Memory, req.workspace); why != "" {
		t.addWarning("%s: no memory: %s", cmp.Or(d.Path, d.Name), why)
		return t, def, nil
	}
	store, err := cfg.Tools.OpenMemory(d.Memory, d.Name, req.workspace)
	if err != nil {
		return t, def, fmt.Errorf("runspec: %w", err)
	}
	notes, broken, err := store.Notes()
	if err != nil {
		t.addWarning("%s: no memory: %v", cmp.Or(d.Path, d.Name), err)
		return t, def, nil
	}
	wrong := make([]string, len(broken))
	for i, n := range broken {
		wrong[i] = fmt.Sprintf("the note %s of %s is left out: %v", n.Name, d.Name, n.Err)
	}
	t.warnings = append(t.warnings, toolset.LimitNotes(wrong, toolset.NotesPerTopic, "notes are left out")...)
	list, err := cfg.Tools.MemoryPrompt(store, notes, req.workspace)
	if err != nil {
		return t, def, fmt.Errorf("runspec: %w", err)
	}
	p, err := prompt.Compose([]prompt.Layer{{Name: "role", Content: def.System, Priority: prompt.RolePriority},
		{Name: "memory", Content: list, Priority: prompt.MemoryPriority}})
	if err != nil {
		return t, def, fmt.Errorf("runspec: agent %s: %w", d.Name, err)
	}
	def.System, def.Memory = p.Stable, d.Memory
	if slices.ContainsFunc(notes, func(n agentmemory.Note) bool { return n.Tainted }) {
		def.Tainted = &spec.Taint{Source: "memory"}
	}
	if def.Tools != nil {
		def.Tools = append(slices.Clone(def.Tools), agentmemory.ToolNames()...)
	}
	return t, def, nil
}

// whyNoMemory says why an agent cannot have a memory in this run; "": it can.
func whyNoMemory(cfg *Config, scope, workspace string) string {
	taken := func(name string) bool { return slices.Contains(cfg.OwnTools, name) }
	switch {
	case slices.ContainsFunc(agentmemory.ToolNames(), taken):
		return "a function of the program has the name of one of its tools"
	case scope != agentmemory.User && scope != agentmemory.Project:
		return fmt.Sprintf("%.40q is neither %s nor %s", scope, agentmemory.User, agentmemory.Project)
	case workspace == "" && scope == agentmemory.Project:
		return "the run has no directory; give it one with --dir"
	case workspace == "" && cfg.Pools != nil:
		return "its notes are on this machine, and a run without a directory may continue on another; give it a directory with --dir"
	}
	return ""
}

// grantMemory adds the tools of a memory to the run, if an agent of it has one.
func grantMemory(cfg *Config, t toolGrants) (toolGrants, error) {
	if !slices.ContainsFunc(t.definitions, hasMemory) {
		return t, nil
	}
	specs, err := cfg.Tools.MemorySpecs()
	if err != nil {
		return t, fmt.Errorf("runspec: %w", err)
	}
	t.tools = slices.Concat(t.tools, specs)
	return t, nil
}

func hasMemory(d supervisor.Definition) bool { return d.Memory != "" }

// offerMemory offers the tools of a memory to the agents that have one, and to no others: an agent that may have all
// tools of the run may pass these on to a child, and has no notes of its own.
func offerMemory(defs []supervisor.Definition, tools []model.ToolSpec) []supervisor.Definition {
	if !slices.ContainsFunc(defs, hasMemory) {
		return defs
	}
	memory := slices.DeleteFunc(slices.Clone(tools), func(s model.ToolSpec) bool { return !slices.Contains(agentmemory.ToolNames(), s.Name) })
	names := toolset.ToolNames(memory)
	defs = slices.Clone(defs)
	for i, d := range defs {
		mayPass := d.Tools == nil || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(d.Tools, name) })
		switch {
		case hasMemory(d) && d.Offer != nil:
			defs[i].Offer = slices.Concat(d.Offer, names)
		case !hasMemory(d) && mayPass:
			defs[i].Offer = offerWithout(d, tools, memory)
		}
	}
	return defs
}
