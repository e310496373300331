package runspec

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/toolset"
)

// FindDifferences returns how this node differs from the configuration that a task began with.
// The agent uses the recorded configuration either way, and decides whether to continue.
func (b *Builder) FindDifferences(t spec.Task) map[string]string {
	found := map[string]string{}
	compare := func(key, here string) {
		if t.Hashes[key] != here && len(found) < agent.FoundMax {
			found[key] = here
		}
	}
	if t.Workspace != "" {
		if info, err := os.Stat(t.Workspace); err != nil || !info.IsDir() {
			found[spec.WorkspaceVersion] = ""
			return found // nothing else can be compared without it
		}
	}
	if hash, ok := b.promptVersion(t); ok {
		compare(spec.PromptVersion, hash)
	}
	compare(spec.HooksVersion, HashVersion(b.cfg.Hooks))
	compare(spec.RouteVersion, b.RouteVersion(t.Model.Name))
	further := slices.DeleteFunc(slices.Clone(toolset.NamedOnly), func(name string) bool { return t.Hashes[spec.ToolVersion+name] == "" })
	if tools, err := toolVersions(b, t.Workspace, further); err == nil {
		for _, key := range differentTools(t, tools) {
			compare(key, tools[key])
		}
	}
	return found
}

// differentTools returns the keys of the tools that differ from those of a task, and of those that this node lacks. Tools
// of another class come first: they wait for a person, and FoundMax must not leave them out.
func differentTools(t spec.Task, tools map[string]string) (keys []string) {
	for key, recorded := range t.Hashes {
		if here := tools[key]; strings.HasPrefix(key, spec.ToolVersion) && here != recorded {
			keys = append(keys, key)
		}
	}
	for key := range tools {
		if t.Hashes[key] == "" {
			keys = append(keys, key)
		}
	}
	rank := func(key string) int {
		here, _, _ := strings.Cut(tools[key], ":")
		if recorded, _, _ := strings.Cut(t.Hashes[key], ":"); here != "" && recorded != "" && here != recorded {
			return 0
		}
		return 1
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	return keys
}

// promptVersion returns the version of the current definition; ok is false if this node
// does not have it, which is no evidence of a change.
func (b *Builder) promptVersion(t spec.Task) (hash string, ok bool) {
	if t.Source != "" {
		raw, err := safefile.Read(t.Source, agentfile.FileBytesMax)
		if err != nil {
			return "", false
		}
		d, _, err := agentfile.Parse(t.Source, raw)
		if err != nil {
			return "", true
		}
		return HashVersion(d.Prompt), true
	}
	for _, d := range b.cfg.Agents {
		if d.Name == t.Name {
			return HashVersion(d.Prompt), true
		}
	}
	for _, a := range investigator.BuiltinAgents() {
		if a.Name == t.Name {
			return HashVersion(a.System), true
		}
	}
	return "", false
}

// RouteVersion returns the version of a route as this node knows it, "" if it does not know
// the route.
func (b *Builder) RouteVersion(route string) string {
	c, err := b.cfg.Routes.ChoiceOf(route)
	if err != nil {
		return ""
	}
	return HashVersion(baseModel(withRoute(spec.Model{}, c, nil)))
}

// settingsOf returns the settings of the directory of a run; nil without one.
func settingsOf(workspace string) *agentfile.DirectorySettings {
	if workspace == "" {
		return nil
	}
	s := agentfile.ReadDirectorySettings(workspace, config.FileName)
	return &s
}
