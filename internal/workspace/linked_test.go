package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run in a directory of dotfiles could change the settings to which a link leads, and with them the rules and hooks of
// the next run: it is refused. Others are not.
func TestDirectoryOfALinkedSettingsFileIsRefused(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	dotfiles, project, state := filepath.Join(home, "dotfiles"), filepath.Join(home, "project"), filepath.Join(home, "state")
	for _, dir := range []string{filepath.Join(home, ".claude"), dotfiles, project, state} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".claude/settings.json", ".claude/CLAUDE.md"} {
		source, link := filepath.Join(dotfiles, filepath.Base(name)), filepath.Join(home, name)
		if err := os.WriteFile(source, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(source, link); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{dotfiles, home} {
			if _, err := New(state, "").HiddenDirs(dir); err == nil || !strings.Contains(err.Error(), "has the file that "+link+" links to") {
				t.Errorf("%s, in %s: %v", name, dir, err)
			}
		}
		if _, err := New(state, "").HiddenDirs(project); err != nil {
			t.Error(err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	if hidden, err := New(state, "").HiddenDirs(home); err != nil || len(hidden) == 0 {
		t.Errorf("%v, %v", hidden, err)
	}
}
