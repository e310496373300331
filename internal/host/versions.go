package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/scout"
	"github.com/troupe-run/troupe/supervisor"
)

// versionBytes is how much of a hash tells versions apart.
const versionBytes = 8

// version is the hash of anything that has a form as JSON.
func version(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // of what cannot be written nobody can say that it changed
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:versionBytes])
}

// versions records what a run is begun with, before its prompts are composed: a
// node that takes it over compares (F4).
func (h *Host) versions(o *supervisor.Opened) error {
	var mine []string
	for _, name := range byName {
		if specOf(o.Tools, name) >= 0 && !isCommand(o.Commands, name) {
			mine = append(mine, name)
		}
	}
	tools, err := h.toolVersions(o.Workspace, mine)
	if err != nil {
		return err
	}
	o.Hashes = tools
	o.Hashes[agent.HooksVersion], o.Hashes[agent.PolicyVersion] = version(h.cfg.Hooks), version(o.Policy)
	o.Hashes[agent.RouteOf(o.Model.Name)] = version(priced(o.Model))
	for i, d := range o.Definitions {
		if d.Hash == "" {
			o.Definitions[i].Hash = version(d.System)
		}
		if d.Model != nil {
			o.Hashes[agent.RouteOf(d.Model.Name)] = version(priced(*d.Model))
		}
	}
	return nil
}

// priced is what a route is, without the wishes of who takes it.
func priced(m agent.Model) agent.Model {
	m.Price.Allowed = false // a wish, too
	return agent.Model{Name: m.Name, Window: m.Window, Price: m.Price, Output: m.Output}
}

// toolVersions are those of the tools that this node has in a directory, each
// with the class that it has here. further are those that were named.
func (h *Host) toolVersions(dir string, further []string) (map[string]string, error) {
	specs, err := h.specs(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range further {
		t, err := h.power(name, dir, "")
		if err != nil {
			return nil, err
		}
		specs = append(specs, t.Spec())
	}
	own := supervisor.Opened{Tools: slices.Clone(specs)}
	if err := h.classify(&own, &client.RunAccepted{}); err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, s := range own.Tools {
		versions[agent.ToolVersion+s.Name] = toolVersion(s)
	}
	return versions, nil
}

func toolVersion(s model.ToolSpec) string { return string(s.Class) + ":" + version(s) }

// differs says what this node has otherwise than a task was begun with: what the
// record holds counts for the agent either way, and it decides whether it goes on.
func (h *Host) differs(t agent.Task) map[string]string {
	found := map[string]string{}
	compare := func(key, here string) {
		if t.Hashes[key] != here && len(found) < agent.FoundMax {
			found[key] = here
		}
	}
	if t.Workspace != "" {
		if info, err := os.Stat(t.Workspace); err != nil || !info.IsDir() {
			found[agent.WorkspaceVersion] = ""
			return found // nothing else can be told without it
		}
	}
	if hash, ok := h.promptVersion(t); ok {
		compare(agent.PromptVersion, hash)
	}
	compare(agent.HooksVersion, version(h.cfg.Hooks))
	compare(agent.RouteVersion, h.models.version(t.Model.Name))
	further := slices.DeleteFunc(slices.Clone(byName), func(name string) bool { return t.Hashes[agent.ToolVersion+name] == "" })
	if tools, err := h.toolVersions(t.Workspace, further); err == nil {
		for key := range t.Hashes {
			if _, here := tools[key]; strings.HasPrefix(key, agent.ToolVersion) && !here {
				compare(key, "")
			}
		}
		for key, hash := range tools {
			compare(key, hash)
		}
	}
	return found
}

// promptVersion is that of the definition as it is now; ok is false where this
// node does not have it, which says nothing about it.
func (h *Host) promptVersion(t agent.Task) (hash string, ok bool) {
	if t.Source != "" {
		raw, err := safefile.Read(t.Source, agentfile.FileBytesMax)
		if err != nil {
			return "", false
		}
		d, _, err := agentfile.Parse(t.Source, raw)
		if err != nil {
			return "", true
		}
		return version(d.Prompt), true
	}
	for _, d := range h.cfg.Own.Agents {
		if d.Name == t.Name {
			return version(d.Prompt), true
		}
	}
	for _, a := range scout.Agents() {
		if a.Name == t.Name {
			return version(a.System), true
		}
	}
	return "", false
}

// version is that of a route as this node knows it, "" where it has none.
func (m *models) version(route string) string {
	c, err := m.choiceOf(route)
	if err != nil {
		return ""
	}
	return version(priced(along(agent.Model{}, c, nil)))
}
