package agentfile

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestTheNearestInstructionsCount(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"/repo/.git", "/repo/a/b", "/repo/c", "/loose/d"} {
		if err := os.MkdirAll(top+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, top+"/AGENTS.md", "of nobody")
	writeFile(t, top+"/repo/AGENTS.md", "\uFEFFof the\r\nrepository\x00\n")
	writeFile(t, top+"/repo/a/AGENTS.md", "of a")
	writeFile(t, top+"/repo/a/b/CLAUDE.md", "of claude")
	writeFile(t, top+"/loose/CLAUDE.md", "of loose")
	for _, c := range []struct{ dir, within, want string }{
		{"/repo/a/b", "/", "of a"},
		{"/repo/c", "/", "of the\nrepository"},
		{"/repo/a/b", "/repo/a/b", "of claude"}, // files above the root of a node are not read
		{"/repo/c", "/repo/c", ""},
		{"/loose", "/", "of loose"},
		{"/loose/d", "/", ""}, // above a directory of no repository nothing belongs to it
	} {
		g, ok, err := FindGuide(top+c.dir, top+strings.TrimSuffix(c.within, "/"))
		if err != nil || ok != (c.want != "") || g.Text != c.want {
			t.Errorf("%s within %s: %+v %v", c.dir, c.within, g, err)
		}
	}
}

// A working directory may come from anyone.
func TestInstructionsOfAStrangerLeadNowhere(t *testing.T) {
	top := t.TempDir()
	writeFile(t, top+"/secret", "key")
	for name, make := range map[string]func(path string) error{
		"a link out":  func(path string) error { return os.Symlink("../secret", path) },
		"a device":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		dir := top + "/" + strings.ReplaceAll(name, " ", "-")
		if err := errors.Join(os.Mkdir(dir, 0o755), make(dir+"/AGENTS.md")); err != nil {
			t.Fatal(err)
		}
		if g, ok, err := FindGuide(dir, dir); ok || !errors.Is(err, errGuide) || !strings.Contains(err.Error(), "AGENTS.md") || strings.Contains(g.Text, "key") {
			t.Errorf("%s: %+v %v", name, g, err)
		}
	}
	dir := top + "/long"
	writeFile(t, dir+"/real.md", strings.Repeat("ä", GuideBytesMax))
	if err := os.Symlink("real.md", dir+"/AGENTS.md"); err != nil {
		t.Fatal(err)
	}
	if g, ok, err := FindGuide(dir, dir); !ok || err != nil || len(g.Text) > GuideBytesMax || g.Size != 2*GuideBytesMax || strings.Contains(g.Text, "\uFFFD") {
		t.Errorf("%d of %d %v %v", len(g.Text), g.Size, ok, err)
	}
}
