package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackAnotherNameOfARootIsThatRoot: a directory may have several names, by the case
// of its letters (macOS, Windows), by a mount, by a link. Files that a run may write are
// not trusted under any of them.
func TestAttackAnotherNameOfARootIsThatRoot(t *testing.T) {
	t.Parallel()
	root, other := filepath.Join(t.TempDir(), "Root"), filepath.Join(t.TempDir(), "name")
	writeText(t, "x", root, "agents", "a.md")
	if err := os.Symlink(root, other); err != nil {
		t.Fatal(err)
	}
	names := []string{root, other}
	if folded := strings.ToLower(root); isSame(folded, root) {
		names = append(names, folded)
	}
	p := Policy{Roots: []string{root}, RequestsFromUser: true}
	for _, name := range names {
		for _, file := range []string{filepath.Join("agents", "a.md"), "to-come.md", filepath.Join("new", "to-come.md")} {
			if path := filepath.Join(name, file); ContainingPlace(path, []string{root}) == "" || !mayChange(p, path) {
				t.Errorf("%s is not taken for a file of the root %s", path, root)
			}
		}
	}
	if path := filepath.Join(filepath.Dir(root), "Rooted", "a.md"); ContainingPlace(path, []string{root}) != "" {
		t.Errorf("%s is taken for a file of the root %s", path, root)
	}
}

func mayChange(p Policy, path string) bool {
	_, may := p.mayChange(path, "")
	return may
}
