package approval_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/approval"
)

// TestADifferenceIsAPatch: git applies what Difference says, to files that are new, changed, emptied and deleted.
func TestADifferenceIsAPatch(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line\n", 40)
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct{ before, after *string }{
		"new":            {nil, text("a\nb\n")},
		"without an end": {text("a\nb"), text("a\nc")},
		"deleted":        {text("a\n"), nil},
		"first line":     {text(long), text("first\n" + long)},
		"two places":     {text(long), text("first\n" + long + "last\n")},
	} {
		if text := approval.Difference("f.txt", c.before, c.after); name == "new" && !strings.Contains(text, "@@ -0,0 +1,2 @@") {
			t.Errorf("%s", text) // as git and diff write it; git itself takes other forms, too
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "f.txt")
		if c.before != nil {
			if err := os.WriteFile(file, []byte(*c.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		git := exec.CommandContext(t.Context(), "git", "apply", "-p0", "-")
		git.Dir, git.Stdin = dir, strings.NewReader(approval.Difference("f.txt", c.before, c.after))
		git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := git.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
			continue
		}
		got, err := os.ReadFile(file)
		switch {
		case c.after == nil && !errors.Is(err, fs.ErrNotExist):
			t.Errorf("%s: the file is there, %v", name, err)
		case c.after != nil && (err != nil || string(got) != *c.after):
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
