package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/supervisor"
)

const clerkWithHook = `---
name: %s
description: d
hooks: {PreToolUse: [{hooks: [{command: "touch pwned"}]}]}
x-troupe: {hooks: [{point: context, name: fold}]}
---
x
`

func writeText(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Command hooks count from the operator and from the directory that --agents names. Those
// of a mere working directory do not count, and the user is warned (A19).
func TestADirectoryThatIsLookedAtBringsNoCommandHooks(t *testing.T) {
	t.Parallel()
	dir, named := t.TempDir(), t.TempDir()
	writeText(t, strings.ReplaceAll(clerkWithHook, "%s", "clerk"), dir, ".claude", "agents", "clerk.md")
	writeText(t, strings.ReplaceAll(clerkWithHook, "%s", "friend"), named, "friend.md")
	writeText(t, "hooks: {Stop: [{hooks: [{command: touch pwned}]}]}\n", dir, "troupe.yaml")
	own := spec.Hook{Name: "own", Point: spec.HookStop, Command: "true"}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots, c.Hooks = []string{dir, named}, []spec.Hook{own} })

	o, a, err := h.buildRun(client.RunRequest{RunID: client.NewID(), Prompt: "p", Dir: dir, Agent: "clerk", Agents: named, Model: "builtin/scout"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.LoopOptions.Hooks, []spec.Hook{own}) {
		t.Errorf("the run's hooks: %+v", o.LoopOptions.Hooks)
	}
	for name, want := range map[string][]string{"clerk": {"fold"}, "friend": {"friend/PreToolUse.1", "fold"}} {
		i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name })
		var got []string
		for _, k := range o.Definitions[i].LoopOptions.Hooks {
			got = append(got, k.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("hooks of %s: %v, want %v", name, got, want)
		}
	}
	notes := strings.Join(a.Notes, "\n")
	for _, part := range []string{"clerk.md: ignored: its hooks", "troupe.yaml: ignored: its hooks"} {
		if !strings.Contains(notes, part) {
			t.Errorf("the notes lack %q:\n%s", part, notes)
		}
	}
}

// More hooks than one agent may have are refused when the run is opened.
func TestTooManyHooksAreRefused(t *testing.T) {
	t.Parallel()
	hooks := slices.Repeat([]spec.Hook{{Name: "check", Point: spec.HookStop, Command: "true"}}, spec.HooksMax+1)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Hooks = hooks })
	if _, _, err := h.buildRun(client.RunRequest{RunID: client.NewID(), Prompt: "p", Model: "builtin/scout"}); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("built: %v", err)
	}
}

// A node does not start with a hook that makes no sense, or whose decisions would look like those of a rule.
func TestHooksOfANodeAreChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []spec.Hook{{Point: spec.HookStop, Command: "true"}, {Name: "a rule", Point: spec.HookPreTool, Command: "true"}, {Name: spec.PermissionHook, Point: spec.HookPreTool}} {
		h, err := Start(testContext(t), Config{StartServer: embedded.StartServer, StateDir: t.TempDir(), Hooks: []spec.Hook{bad}})
		if err == nil {
			t.Errorf("a node started with %+v", bad)
			_ = h.Close()
		}
	}
}

// A command hook of the operator has a say over a whole node.
//
//behaviour:shows A17
func TestAnOperatorsHookPreventsAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, "hello", dir, "README.md")
	hook := spec.Hook{Name: "audit", Point: spec.HookStop, Of: spec.OfRoot, Command: `echo '{"continue": false, "stopReason": "audit first"}'`}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots, c.Hooks = []string{dir}, []spec.Hook{hook} })
	c := connectClient(t, h)
	a, err := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "Investigate this directory.", Dir: dir, Model: "builtin/scout"})
	if err != nil {
		t.Fatal(err)
	}
	waitFinished(t, c, a.RunID, spec.StopHookPrevented)
}
