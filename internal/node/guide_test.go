package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

func writeFileAt(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func hasInstructions(o supervisor.Opened) bool {
	return strings.Contains(o.LoopOptions.Dynamic, "tabs")
}

// A project's instructions are in the prompts once, after an agent's own text, with secrets
// masked, and with the name of the file.
//
//behaviour:shows D2
func TestAProjectsInstructionsArePartOfThePrompts(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	writeFileAt(t, repo+"/.git/HEAD", "ref: x\n")
	writeFileAt(t, repo+"/AGENTS.md", "Use tabs.\npassword = \"hunter2xKq9Zt41Lw\"\n")
	writeFileAt(t, repo+"/sub/x.txt", "x")
	key := withEnv("ANTHROPIC_API_KEY", "k")
	run := func(dir string, change ...func(*Config)) (supervisor.Opened, client.RunAccepted) {
		t.Helper()
		o, a, err := newBuildOnlyNode(dir, append(change, key)...).buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Model = dir, "" }))
		if err != nil {
			t.Fatal(err)
		}
		return o, a
	}
	o, a := run(repo)
	if d := o.LoopOptions.Dynamic; !strings.HasPrefix(d, "What this project says") || !strings.Contains(d, "Use tabs.") || strings.Contains(d, "hunter2") || !strings.Contains(d, "Today is") {
		t.Errorf("%q", d)
	}
	if !strings.Contains(o.LoopOptions.Dynamic, "(AGENTS.md)") || !strings.HasPrefix(strings.Join(a.Notes, "\n"), "AGENTS.md is part of the prompts") {
		t.Errorf("%v", a.Notes)
	}
	if o, _ := run(repo + "/sub"); hasInstructions(o) {
		t.Errorf("above the root of a node: %q", o.LoopOptions.Dynamic)
	}
	if o, a := run(repo+"/sub", func(c *Config) { c.SearchParentDirs = true }); !hasInstructions(o) || !strings.HasPrefix(a.Notes[0], "../AGENTS.md") {
		t.Errorf("of the user's own: %q %v", o.LoopOptions.Dynamic, a.Notes)
	}
	o, _, err := newBuildOnlyNode(repo, key).buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Model, r.NoAgentsMD = repo, "", true }))
	if err != nil || hasInstructions(o) {
		t.Errorf("%q %v", o.LoopOptions.Dynamic, err)
	}
	if o, _, err = newBuildOnlyNode(repo).buildRun(newRequest(func(r *client.RunRequest) { r.Dir = repo })); err != nil || hasInstructions(o) {
		t.Errorf("the built-in model follows rules: %q %v", o.LoopOptions.Dynamic, err)
	}
	if err := os.Remove(repo + "/AGENTS.md"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", repo+"/AGENTS.md"); err != nil {
		t.Fatal(err)
	}
	_, _, err = newBuildOnlyNode(repo, key).buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Model = repo, "" }))
	if err == nil || !strings.Contains(err.Error(), "AGENTS.md") {
		t.Errorf("a link out of the repository: %v", err)
	}
}

// A directory may hold more agents than a run has room for: agents that can never be called
// are removed first, and the requested agents stay.
func TestADirectoryOfManyAgentsFitsARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 60 {
		writeFileAt(t, fmt.Sprintf("%s/a%02d.md", dir, i), fmt.Sprintf("---\ndescription: d\nx-troupe: {delegates: [a%02d]}\n---\n%s\n", (i+1)%60, strings.Repeat("word ", 1000)))
	}
	writeFileAt(t, dir+"/far.md", "---\ndescription: d\n---\n"+strings.Repeat("x", agentfile.FileBytesMax/2))
	h := newBuildOnlyNode(dir)
	o, a, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Agents, r.Agent = dir, "a50" }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mailbox.Marshal(o); err != nil {
		t.Error(err)
	}
	names := []string{}
	for _, d := range o.Definitions {
		names = append(names, d.Name)
	}
	if !slices.Contains(names, "a50") || !slices.Contains(names, "a51") || slices.Contains(names, "far") || slices.Contains(names, "coordinator") {
		t.Errorf("%v", names)
	}
	if len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "agents are left out") {
		t.Errorf("%v", a.Notes)
	}
	if _, _, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Agents, r.Agent = dir, "far" })); err == nil || !strings.Contains(err.Error(), "the prompts of far have 5243") {
		t.Error(err)
	}
}

// A CLAUDE.md brings the files that it imports, and the header names what of Claude Code's project is not read.
func TestFilesOfAClaudeCodeProject(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	writeFileAt(t, repo+"/CLAUDE.md", "Read @docs/style.md first.\n")
	writeFileAt(t, repo+"/docs/style.md", "Use tabs.\n")
	writeFileAt(t, repo+"/.claude/settings.json", `{"permissions":{"deny":["Read(./secret.txt)"]},"env":{"A":"b"}}`)
	o, a, err := newBuildOnlyNode(repo, withEnv("ANTHROPIC_API_KEY", "k")).buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Model = repo, "" }))
	if err != nil {
		t.Fatal(err)
	}
	if !hasInstructions(o) {
		t.Error(o.LoopOptions.Dynamic)
	}
	if p := o.Permissions; len(p.Deny) != 1 || p.Deny[0].Text != "read_file(./secret.txt)" {
		t.Errorf("%+v", p)
	}
	notes := strings.Join(a.Notes, "\n")
	for _, want := range []string{"it imports docs/style.md", ".claude/settings.json: without effect here: env"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in %s", want, notes)
		}
	}
}
