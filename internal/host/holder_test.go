package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackAnotherNameOfARootIsThatRoot: a directory may have several names, by the
// case of its letters (macOS, Windows), by a mount, by a link. What a run may write is
// not trusted by any of them.
func TestAttackAnotherNameOfARootIsThatRoot(t *testing.T) {
	t.Parallel()
	root, other := filepath.Join(t.TempDir(), "Root"), filepath.Join(t.TempDir(), "name")
	put(t, "x", root, "agents", "a.md")
	if err := os.Symlink(root, other); err != nil {
		t.Fatal(err)
	}
	names := []string{root, other}
	if folded := strings.ToLower(root); isSame(folded, root) {
		names = append(names, folded)
	}
	h := doors(root)
	for _, name := range names {
		for _, file := range []string{filepath.Join("agents", "a.md"), "to-come.md", filepath.Join("new", "to-come.md")} {
			if path := filepath.Join(name, file); containingPlace(path, []string{root}) == "" || !mayChange(h, path) {
				t.Errorf("%s is not taken for a file of the root %s", path, root)
			}
		}
	}
	if path := filepath.Join(filepath.Dir(root), "Rooted", "a.md"); containingPlace(path, []string{root}) != "" {
		t.Errorf("%s is taken for a file of the root %s", path, root)
	}
}

func mayChange(h *Host, path string) bool {
	_, may := h.cfg.mayChange(path, "")
	return may
}
