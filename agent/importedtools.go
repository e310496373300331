package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/model"
)

// knownToolsMax bounds the tools that an earlier history may add to a task.
const knownToolsMax = 64

var toolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// offerKnownTools adds the tools whose results an earlier history holds and that
// the task does not offer: a provider requires every tool that a transcript names.
// They are forbidden, so a call of them does not run.
func offerKnownTools(t spec.Task, messages []model.Message) spec.Task {
	names, added := map[string]string{}, 0
	for _, m := range messages {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		for _, r := range m.Results {
			name := names[r.Call]
			offered := slices.ContainsFunc(t.Tools, func(toolSpec model.ToolSpec) bool { return toolSpec.Name == name })
			if r.Error || m.Tombstone || offered || !toolName.MatchString(name) || added >= knownToolsMax {
				continue
			}
			added++
			t.Tools = append(slices.Clip(t.Tools), model.ToolSpec{Name: name, Class: model.Read, Schema: `{"type":"object"}`,
				Description: "An earlier part of this conversation used it. It is no longer available."})
			if !slices.Contains(t.Forbidden, name) {
				t.Forbidden = append(slices.Clip(t.Forbidden), name)
			}
		}
	}
	return t
}
