package toolset

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/agentmemory"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// OpenMemory names the notes that an agent keeps on this node beyond a run.
func (b *Builder) OpenMemory(scope, agent, dir string) (agentmemory.Store, error) {
	return agentmemory.OpenStore(statedir.StateDir(b.cfg.StateDir), scope, agent, dir)
}

// MemoryPrompt returns the part of a prompt that lists the notes of a store, for a run in a directory ("": in none).
// It hides the secrets that are known now: a note may be older than a secret.
func (b *Builder) MemoryPrompt(store agentmemory.Store, notes []agentmemory.Note, dir string) (string, error) {
	mask, err := b.maskerOf(dir)
	if err != nil {
		return "", fmt.Errorf("toolset: %w", err)
	}
	return mask.MaskText(store.Prompt(notes)), nil
}

// MemorySpecs describes the tools of a memory.
func (b *Builder) MemorySpecs() (specs []model.ToolSpec, err error) {
	for _, name := range agentmemory.ToolNames() {
		t, err := b.MakeTool(name, "", "")
		if err != nil {
			return nil, fmt.Errorf("toolset: %s: %w", name, err)
		}
		specs = append(specs, t.Spec())
	}
	return specs, nil
}

// memoryTools returns the tools of the memory that a task has. mask hides what no note may hold.
func (b *Builder) memoryTools(t spec.Task, mask *redact.Masker) (list []tool.Tool, err error) {
	if t.Memory == "" {
		return nil, nil
	}
	store, err := b.OpenMemory(t.Memory, t.Name, t.Workspace)
	if err != nil {
		return nil, fmt.Errorf("toolset: %w", err)
	}
	for _, name := range agentmemory.ToolNames() {
		if IndexTool(t.Tools, name) < 0 || IsCommand(t.Commands, name) {
			continue
		}
		made, err := agentmemory.NewTool(name, store, mask.MaskText)
		if err != nil {
			return nil, fmt.Errorf("toolset: %w", err)
		}
		list = append(list, made)
	}
	return list, nil
}
