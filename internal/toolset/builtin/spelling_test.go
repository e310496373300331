package builtin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/toolset/builtin"
)

// Each spelling of the directory itself lists the same, without what the tools may not see, and the spelling of a path
// below it does not lift a limit.
func TestAttackSpellingsOfTheDirectory(t *testing.T) {
	t.Parallel()
	b := newBox(t, map[string]string{"open/a": "needle", "kept/b": "needle", ".env": "KEY=needle"})
	if err := os.Symlink("kept", filepath.Join(b.dir, "open", "up")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../kept", filepath.Join(b.dir, "open", "link")); err != nil {
		t.Fatal(err)
	}
	b.openTools(builtin.Config{Without: []string{filepath.Join(b.dir, "kept")}, Hidden: func(name string) bool { return name == ".env" },
		Within: func(_, name string) bool { return strings.HasPrefix(name, "open") }})
	for _, name := range []string{"", ".", "./", "open/..", "./open/../", b.dir, b.dir + "/", b.dir + "/open/.."} {
		for tool, args := range map[string]string{"list_dir": `{"path":%q}`, "grep": `{"pattern":"needle","path":%q}`} {
			text := b.callTool(tool, args, name)
			if !strings.Contains(text, "open") || strings.Contains(text, "kept/b") || strings.Contains(text, ".env") || tool == "list_dir" && strings.Contains(text, "kept") {
				t.Errorf("%s of %q: %s", tool, name, text)
			}
		}
	}
	for _, name := range []string{"kept/b", "./kept/b", "open/../kept/b", "open/link/b", "./open/link/b", b.dir + "/kept/b", b.dir + "/open/link/b", "./.env", b.dir + "/.env"} {
		if text := b.callTool("read_file", `{"path":%q}`, name); !strings.HasPrefix(text, "error: ") || strings.Contains(text, "needle") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
