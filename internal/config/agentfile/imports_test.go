package agentfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func findGuide(t *testing.T, dir, within string) Guide {
	t.Helper()
	g, ok, err := FindGuide(dir, within)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return g
}

// TestImportsOfAProjectsInstructions: a CLAUDE.md has the text of the files that it imports, each once, also of those that
// they import.
func TestImportsOfAProjectsInstructions(t *testing.T) {
	dir := writeTree(t, map[string]string{
		".git/HEAD":             "ref: x\n",
		"CLAUDE.md":             "Style: @docs/style.md and (@docs/tests.md).\nAsk @alice. Mail me@docs/no.md.\n`@docs/no.md`\n```\n@docs/no.md\n```\n",
		"docs/style.md":         "Use tabs. @more/names.md @../CLAUDE.md",
		"docs/tests.md":         "Test all. @style.md",
		"docs/more/names.md":    "Short names.",
		"docs/no.md":            "never",
		"AGENTS/ignored.md":     "x",
		"sub/deep/file-of.text": "x",
	})
	g := findGuide(t, filepath.Join(dir, "sub"), dir)
	if want := []string{"docs/style.md", "docs/more/names.md", "docs/tests.md"}; !slices.Equal(g.Imports, want) {
		t.Errorf("imports %v, want %v", g.Imports, want)
	}
	for _, want := range []string{"Style: @docs/style.md", "[docs/style.md]\nUse tabs.", "[docs/more/names.md]\nShort names.", "[docs/tests.md]\nTest all."} {
		if !strings.Contains(g.Text, want) {
			t.Errorf("no %q in\n%s", want, g.Text)
		}
	}
	if strings.Contains(g.Text, "never") {
		t.Error(g.Text)
	}
}

// TestAttackImportsStayInTheTree: a repository brings no file of the machine into a prompt, nor endless text.
func TestAttackImportsStayInTheTree(t *testing.T) {
	outside := writeTree(t, map[string]string{"secret.txt": "outside"})
	files := map[string]string{"CLAUDE.md": "@../secret.txt @/etc/passwd @~/.ssh/id @link.txt @dir @docs/0.md @" + strings.Repeat("a/", 3000) + "b"}
	for n := range 40 {
		files[fmt.Sprintf("docs/%d.md", n)] = strings.Repeat(fmt.Sprintf("part %d ", n), 1000) + fmt.Sprintf(" @%d.md", n+1)
	}
	dir := writeTree(t, files)
	if err := os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	g := findGuide(t, dir, dir)
	if strings.Contains(g.Text, "outside") || strings.Contains(g.Text, "root:") {
		t.Error(g.Text[:200])
	}
	if len(g.Text) > GuideBytesMax || len(g.Imports) > importDepthMax || g.Size <= int64(len(g.Text)) {
		t.Errorf("%d bytes of %d, %v", len(g.Text), g.Size, g.Imports)
	}
}
