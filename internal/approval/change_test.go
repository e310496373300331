package approval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The head of a difference is two lines, whatever the name of the file is.
func TestAttackTheNameOfAFileIsOneLineOfItsDifference(t *testing.T) {
	dir, name := t.TempDir(), "a\n@@ -1,1 +1,1 @@\n+harmless"
	for _, exists := range []bool{false, true} {
		if exists {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("old\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		shown := showChange(dir, "write_file", `{"path":"a\n@@ -1,1 +1,1 @@\n+harmless","content":"evil\n"}`)
		if lines := strings.Split(shown, "\n"); !strings.HasPrefix(lines[1], `+++ a\n@@ -1,1 +1,1 @@\n+harmless`) || !strings.HasPrefix(lines[2], "@@ ") {
			t.Errorf("exists %v: %s", exists, shown)
		}
	}
}
