//go:build unix

package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/permission"
)

// linkedRepository is a git repository whose links and whose index lead from src to files elsewhere in it.
func linkedRepository(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	for name, text := range map[string]string{"secrets/key": "needle-out\n", "src/a.go": "needle-in\n", "src/was/key": "needle-in\n", "top": "needle-out\n"} {
		putFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-qm", "first")
	if err := os.RemoveAll(filepath.Join(dir, "src", "was")); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"src/key": "../secrets/key", "src/dir": "../secrets", "src/up": "..", "src/was": "../secrets", "src/here": "a.go", "src/two": "dir/key"} {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A part of a tool that is granted ends where its paths end, wherever links and the index of git lead.
func TestAttackLinksDoNotLeadOutOfTheGrantedPart(t *testing.T) {
	t.Parallel()
	dir := linkedRepository(t)
	var limits []permission.FileLimit
	for _, name := range permission.ReadTools {
		limits = append(limits, permission.FileLimit{Tool: name, Patterns: []string{"src/**"}})
	}
	for what, rules := range map[string]FileRules{"limits": {Limits: limits}, "denied": {Hidden: []string{"secrets/**", "top"}}} {
		var p Directories
		tools, err := p.Tools(dir, []string{"**"}, rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"src", "src/key", "src/dir", "src/dir/key", "src/up", "src/up/secrets", "src/up/secrets/key", "src/up/top", "src/was", "src/was/key", "src/two", "src/up/src/up/top", filepath.Join(dir, "src/dir/key")} {
			for _, tool := range []string{"read_file", "list_dir", "grep", "git_log", "git_blame"} {
				args := map[string]string{"path": name}
				if tool == "grep" {
					args["pattern"] = "needle"
				}
				r := useTool(t, tools, tool, args)
				if strings.Contains(r.Text, "needle-out") || tool == "list_dir" && (strings.Contains(r.Text, "key\t") || strings.Contains(r.Text, "top\t")) {
					t.Errorf("%s, %s %s: %s", what, tool, name, r.Text)
				}
			}
		}
		if r := useTool(t, tools, "read_file", map[string]string{"path": "src/here"}); r.Error || !strings.Contains(r.Text, "needle-in") {
			t.Errorf("%s, a link that stays within: %s", what, r.Text)
		}
	}
	var p Directories
	tools, err := p.Tools(dir, nil, FileRules{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"src/key", "src/dir/key", "src/up/top", "src/two"} {
		if r := useTool(t, tools, "read_file", map[string]string{"path": name}); !strings.Contains(r.Text, "needle-out") {
			t.Errorf("without rules %s leads nowhere: %s", name, r.Text)
		}
	}
}
