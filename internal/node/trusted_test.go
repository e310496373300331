package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/approval"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// TestAttackRunCannotForgeTrustedFiles: a run in the home of a user has the state of the node and the user's
// settings and agents below its directory. Files that it wrote there would be executed without a question.
func TestAttackRunCannotForgeTrustedFiles(t *testing.T) {
	noLeaks(t)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	writeText(t, "---\nname: mine\ndescription: d\n---\nx\n", home, ".config", "troupe", "agents", "mine.md")
	state, agents := filepath.Join(home, "var", "state"), t.TempDir()
	writeText(t, "---\nname: hand\ndescription: d\ntools: Bash, Read, Write, Edit\n---\nx\n", agents, "hand.md")
	forged := []string{"var/state/forged", ".config/troupe/agents/forged", ".claude/agents/forged"}
	var calls []string
	for _, name := range forged {
		calls = append(calls, fmt.Sprintf(`{name: write_file, args: {path: %q, content: forged}}`, name),
			fmt.Sprintf(`{name: shell, args: {command: "mkdir -p %s; echo forged >%s"}}`, filepath.Dir(name), name))
	}
	calls = append(calls, `{name: shell, args: {command: "mv var old; mv .config old2; mkdir -p var/state .config/troupe/agents; echo forged >var/state/forged"}}`,
		`{name: edit_file, args: {path: .config/troupe/agents/mine.md, old: x, new: forged}}`, `{name: shell, args: {command: "ln -s var/state link"}}`)
	text := "agents:\n  hand:\n    - calls: [" + strings.Join(calls, ", ") + "]\n    - calls: [{name: read_file, args: {path: link/node.json}}]\n    - text: \"[done] {{last}}\"\n"
	h := startNode(t, state, func(c *Config) {
		c.Roots, c.Tools = []string{home, agents}, []agentfile.ToolRule{{Name: "shell", Allow: []string{"*"}}}
	})
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Agent: "hand", Agents: agents, Dir: home, Model: writeScript(t, text), Yes: true})
	info := waitFinished(t, c, id, spec.Completed)
	if !strings.Contains(info.Result.Text, "does not exist") {
		t.Errorf("the state was read through a link: %s", info.Result.Text)
	}
	for _, name := range forged {
		if _, err := os.Stat(filepath.Join(home, name)); !errors.Is(err, fs.ErrNotExist) && approval.MissingProtections(t.Context()) == "" {
			t.Errorf("%s was forged: %v", name, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(home, ".config", "troupe", "agents", "mine.md")); err != nil || strings.Contains(string(data), "forged") {
		t.Errorf("an agent of the user: %q %v", data, err)
	}
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "go", Agent: "hand", Agents: agents, Dir: state, Model: writeScript(t, text)}); err == nil || !strings.Contains(err.Error(), "decides what this node executes") {
		t.Errorf("a run in the state directory: %v", err)
	}
}
