package session

import (
	"testing"

	"github.com/troupe-run/troupe/client"
)

// The command that forks a run names what the run was begun with, and nothing that a run finds by itself.
func TestForkFlags(t *testing.T) {
	builtin := client.DefinitionInfo{Name: "assistant"}
	at := func(source string) client.DefinitionInfo { return client.DefinitionInfo{Name: "boss", Source: source} }
	for want, d := range map[string]client.Description{
		" -m openai/gpt-6-sol":                              {Root: "assistant", Model: client.ModelInfo{Name: "openai/gpt-6-sol"}, Definitions: []client.DefinitionInfo{builtin}},
		" --dir '/my src' -m builtin/scout":                 {Root: "coordinator", Workspace: "/my src", Model: client.ModelInfo{Name: "builtin/scout"}},
		" --agent coordinator -m openai/gpt-6-sol":          {Root: "coordinator", Model: client.ModelInfo{Name: "openai/gpt-6-sol"}},
		" --dir /src --agent boss -m openai/x":              {Root: "boss", Workspace: "/src", Model: client.ModelInfo{Name: "openai/x"}, Definitions: []client.DefinitionInfo{builtin, at("/src/.claude/agents/boss.md"), at("/home/me/agents/x.md")}},
		" --dir /src --agents /team --agent boss -m o/x":    {Root: "boss", Workspace: "/src", Model: client.ModelInfo{Name: "o/x"}, Definitions: []client.DefinitionInfo{at("/team/a/boss.md"), at("/team/b/c/one.md"), at("/team/b/two.md")}},
		" --agents /src/.troupe/agents --agent boss -m o/x": {Root: "boss", Model: client.ModelInfo{Name: "o/x"}, Definitions: []client.DefinitionInfo{at("/src/.troupe/agents/boss.md")}},
	} {
		if got := forkFlags(d, []string{"/home/me/agents"}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
