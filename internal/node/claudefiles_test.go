package node

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/supervisor"
)

// What the user's own files of Claude Code grant counts in exactly the request that a command of the user has recorded; what
// they take away counts in all.
func TestClaudeFilesGrantOnlyInRunsOfTheUser(t *testing.T) {
	t.Parallel()
	home, dir, state := t.TempDir(), t.TempDir(), t.TempDir()
	writeText(t, `{"env": {"A": "b"}, "permissions": {"allow": ["Bash(make)"], "deny": ["Read(x)"], "defaultMode": "acceptEdits"}}`, home, "settings.json")
	writeText(t, "Always whistle.", home, "CLAUDE.md")
	h := newBuildOnlyNode(dir, func(c *Config) {
		c.StateDir, c.ClaudeHome, c.CommandEnv, c.requestsFromUser = state, home, []string{"A=b"}, false
	}, withEnv("ANTHROPIC_API_KEY", "k"))
	own := newRequest(func(r *client.RunRequest) { r.Dir, r.Model = dir, "" })
	if err := BringPlaces(Config{StateDir: state}, own); err != nil {
		t.Fatal(err)
	}
	build := func(change func(*client.RunRequest)) (supervisor.Opened, bool) {
		t.Helper()
		r := own
		change(&r)
		o, a, err := h.buildRun(r)
		if err != nil {
			t.Fatal(err)
		}
		p := o.Permissions
		if !slices.ContainsFunc(p.Deny, func(r spec.PermissionRule) bool { return r.Text == "read_file(x)" }) {
			t.Errorf("no rule that denies: %+v", p)
		}
		granted := len(p.Allow) == 1 && p.Mode == spec.ModeAcceptEdits && p.UserEnv && strings.Contains(o.LoopOptions.Dynamic, "whistle") && a.UserSettings
		denied := len(p.Allow) == 0 && p.Mode == "" && !p.UserEnv && !strings.Contains(o.LoopOptions.Dynamic, "whistle") && !a.UserSettings
		if granted == denied {
			t.Errorf("neither all nor nothing: %+v", p)
		}
		return o, granted
	}
	o, granted := build(func(r *client.RunRequest) { r.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" })
	if !granted {
		t.Error("the user's own request has nothing")
	}
	for what, change := range map[string]func(*client.RunRequest){
		"another run":          func(r *client.RunRequest) { r.RunID = client.NewID() },
		"another prompt":       func(r *client.RunRequest) { r.Prompt = "env | rev" },
		"another conversation": func(r *client.RunRequest) { r.Conversation = "c" },
	} {
		if _, granted := build(change); granted {
			t.Error(what)
		}
	}
	// A file of a run that another client restores does not bring them either.
	if err := runspec.CheckRestored(h.builder, o, client.RunRequest{Dir: dir, Model: provider.Builtin}); err == nil {
		t.Error("a restored run has what the user's files grant")
	}
	if env := h.cfg.envOfCommands(dir); !slices.Equal(env, []string{"A=b"}) {
		t.Error(env)
	}
	if env := h.cfg.envOfCommands(filepath.Dir(home)); env != nil {
		t.Error("a run that could change the file has its variables")
	}
}
