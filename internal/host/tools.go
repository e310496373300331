package host

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/tool/builtin"
	"github.com/troupe-run/troupe/tool/kept"
)

// tools makes the set of one agent: the tools of its directory and the
// commands of its agent file. What it may call was decided when it was
// submitted; the set only does it.
func (h *Host) tools(t agent.Task) (*tool.Set, error) {
	tools, err := h.places.tools(t.Workspace, t.Writable)
	if err != nil {
		return nil, err
	}
	tools = slices.Clone(tools)
	for _, c := range t.Commands {
		i := slices.IndexFunc(t.Tools, func(s model.ToolSpec) bool { return s.Name == c.Name })
		spec := t.Tools[i]
		cmd, err := tool.Command(tool.CommandConfig{Name: spec.Name, Description: spec.Description, Command: c.Line,
			Class: spec.Class, Schema: spec.Schema, Dir: t.Workspace, Exact: true})
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", c.Name, err)
		}
		tools = append(tools, cmd)
	}
	own, err := h.ownPowers(t)
	if err != nil {
		return nil, err
	}
	tools = append(tools, own...)
	tools = append(tools, h.remote(t)...)
	reader, err := kept.Reader(h.blobs)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	set, err := tool.NewSet(slices.Concat(tools, h.cfg.Own.tools(t), []tool.Tool{reader})...)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	if t.Workspace == "" {
		return set.Masked(h.exits.mask), nil
	}
	// What is in its .env files is masked as our own secrets are, whoever prints it.
	secrets, err := builtin.Secrets(t.Workspace)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a directory that is gone has none
		return nil, err
	}
	return set.Masked(h.cfg.secrets(secrets...)), nil
}

// keptSpec describes the tool that reads what was clipped; there is something
// to read only where there are tools.
func (h *Host) keptSpec(tools []model.ToolSpec) ([]model.ToolSpec, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	reader, err := kept.Reader(h.blobs)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	return []model.ToolSpec{reader.Spec()}, nil
}

// specs describes the tools of a directory, and those of the program.
func (h *Host) specs(dir string) ([]model.ToolSpec, error) {
	tools, err := h.places.tools(dir, writable(false))
	if err != nil {
		return nil, bad("name a directory that can be read", "dir: %v", err)
	}
	h.places.mu.Lock()
	defer h.places.mu.Unlock()
	known := h.places.specs[dir != ""] // they are the same for all directories
	if known == nil {
		set, err := tool.NewSet(slices.Concat(tools, h.cfg.Own.Tools)...)
		if err != nil {
			return nil, fmt.Errorf("host: %w", err)
		}
		if h.places.specs == nil {
			h.places.specs = map[bool][]model.ToolSpec{}
		}
		known = set.Specs()
		h.places.specs[dir != ""] = known
	}
	return slices.Clone(known), nil
}
