package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/tool"
)

// useTool calls one tool of a list.
func useTool(t *testing.T, tools []tool.Tool, name string, args map[string]string) tool.Result {
	t.Helper()
	i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Spec().Name == name })
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tools[i].Call(t.Context(), tool.Call{Args: raw})
	if err != nil {
		r.Text = err.Error()
	}
	return r
}

func putFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRecreatedDirectory: a checkout is removed and comes again under the
// same name. Who worked there, and who comes next, works in the new one, and what
// is secret there is hidden.
func TestRecreatedDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "checkout")
	putFile(t, filepath.Join(dir, "old.txt"), "old")
	var p Directories
	before, err := p.Tools(dir, []string{"**"}, FileRules{})
	if err != nil {
		t.Fatal(err)
	}
	if r := useTool(t, before, "read_file", map[string]string{"path": "old.txt"}); !strings.Contains(r.Text, "old") {
		t.Fatalf("%+v", r)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if r := useTool(t, before, "read_file", map[string]string{"path": "old.txt"}); strings.Contains(r.Text, dir) {
		t.Errorf("it says where it was: %q", r.Text)
	}
	putFile(t, filepath.Join(dir, "new.txt"), "new: hunter2-hunter2")
	putFile(t, filepath.Join(dir, ".env"), "API_KEY=hunter2-hunter2")
	after, err := p.Tools(dir, []string{"**"}, FileRules{})
	if err != nil {
		t.Fatal(err)
	}
	for who, tools := range map[string][]tool.Tool{"who worked there": before, "who comes next": after} {
		if r := useTool(t, tools, "list_dir", nil); !strings.Contains(r.Text, "new.txt") {
			t.Errorf("%s lists %q", who, r.Text)
		}
		if r := useTool(t, tools, "read_file", map[string]string{"path": "new.txt"}); !strings.Contains(r.Text, "new:") || strings.Contains(r.Text, "hunter2") {
			t.Errorf("%s reads %q", who, r.Text)
		}
		// The second agent overwrites the file of the first: they share the files that they
		// created.
		useTool(t, tools, "write_file", map[string]string{"path": "report.txt", "content": who})
		if data, err := os.ReadFile(filepath.Join(dir, "report.txt")); err != nil || string(data) != who {
			t.Errorf("%s writes: %q, %v", who, data, err)
		}
	}
}

// TestDirectoriesThatAreHeldOpen: as many as heldMax wait for the next one. Who
// works in one that fell out works on, and nothing is open once the node is closed.
func TestDirectoriesThatAreHeldOpen(t *testing.T) {
	t.Parallel()
	var p Directories
	all, first := t.TempDir(), []tool.Tool(nil)
	for i := range heldMax + 3 {
		dir := filepath.Join(all, fmt.Sprint(i))
		putFile(t, filepath.Join(dir, "a.txt"), "text")
		tools, err := p.Tools(dir, nil, FileRules{})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = tools
		}
	}
	if len(p.known) != heldMax || !strings.HasPrefix(p.known[0].key, filepath.Join(all, "3")+"\x00") {
		t.Errorf("%d are held, the oldest is %q", len(p.known), p.known[0].key)
	}
	if r := useTool(t, first, "read_file", map[string]string{"path": "a.txt"}); !strings.Contains(r.Text, "text") {
		t.Errorf("in what fell out: %q", r.Text)
	}
	if _, err := p.Tools(filepath.Join(all, "5"), nil, FileRules{}); err != nil {
		t.Fatal(err)
	}
	if newest := p.known[heldMax-1].key; !strings.HasPrefix(newest, filepath.Join(all, "5")+"\x00") {
		t.Errorf("the newest in use is %q", newest)
	}
	held := p.known
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, k := range held {
		if r := useTool(t, k.Tools, "list_dir", nil); !strings.Contains(r.Text, "closed") {
			t.Fatalf("%s is still open: %q", k.key, r.Text)
		}
	}
}

// TestALinkInThePlaceOfADirectoryIsNotFollowed: the directory was under a root when the run
// began. A process that may write beside it must not redirect the tools of others.
func TestALinkInThePlaceOfADirectoryIsNotFollowed(t *testing.T) {
	t.Parallel()
	dir, elsewhere := filepath.Join(t.TempDir(), "checkout"), t.TempDir()
	putFile(t, filepath.Join(dir, "mine.txt"), "mine")
	putFile(t, filepath.Join(elsewhere, "theirs.txt"), "theirs")
	var p Directories
	before, err := p.Tools(dir, []string{"**"}, FileRules{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, dir); err != nil {
		t.Fatal(err)
	}
	if r := useTool(t, before, "read_file", map[string]string{"path": "theirs.txt"}); !strings.Contains(r.Text, "has taken its place") {
		t.Errorf("who worked there reads %q", r.Text)
	}
	if _, err := p.Tools(dir, []string{"**"}, FileRules{}); !errors.Is(err, ErrMoved) {
		t.Errorf("who comes next: %v", err)
	}
}

// TestAttackDirectoryMovedAsideIsNotReplacedByAnother: another directory is put under the name of one that an agent works in. One that was
// removed and made again is the same for it, one that was moved aside is not.
func TestAttackDirectoryMovedAsideIsNotReplacedByAnother(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	dir := filepath.Join(above, "checkout")
	putFile(t, filepath.Join(dir, "mine.txt"), "mine")
	putFile(t, filepath.Join(above, "sibling", "theirs.txt"), "theirs")
	var p Directories
	before, err := p.Tools(dir, []string{"**"}, FileRules{})
	if err != nil {
		t.Fatal(err)
	}
	for _, move := range [][2]string{{"checkout", "aside"}, {"sibling", "checkout"}} {
		if err := os.Rename(filepath.Join(above, move[0]), filepath.Join(above, move[1])); err != nil {
			t.Fatal(err)
		}
	}
	if r := useTool(t, before, "read_file", map[string]string{"path": "theirs.txt"}); !strings.Contains(r.Text, "has taken its place") {
		t.Errorf("it reads %q", r.Text)
	}
	useTool(t, before, "write_file", map[string]string{"path": "report.txt", "content": "x"})
	if _, err := os.Stat(filepath.Join(dir, "report.txt")); err == nil {
		t.Error("it wrote in the directory of another one")
	}
	if err := os.Rename(dir, filepath.Join(above, "sibling")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(above, "aside"), dir); err != nil {
		t.Fatal(err)
	}
	if r := useTool(t, before, "read_file", map[string]string{"path": "mine.txt"}); !strings.Contains(r.Text, "mine") {
		t.Errorf("moved back: %q", r.Text)
	}
}

// What a rule denies to read is not there for any tool of the directory, whatever leads to it; to what a rule asks about
// no link leads.
func TestAttackHiddenAndGuardedFilesAreNotReached(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"secrets/key": "needle-denied", "private/note": "needle-asked", "src/a.go": "needle-free"} {
		putFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	for link, to := range map[string]string{"src/key": "../secrets/key", "src/dir": "../secrets", "src/note": "../private/note", "src/out": "/etc/passwd"} {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	var p Directories
	tools, err := p.Tools(dir, []string{"**"}, FileRules{Hidden: []string{"./secrets/**"}, Guarded: []string{"./private/**"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, path string }{
		{"grep", ""}, {"grep", "."}, {"grep", "secrets"}, {"grep", "src/dir"}, {"grep", "src/key"}, {"grep", "src/out"}, {"grep", "SECRETS"}, {"glob", ""}, {"list_dir", ""}, {"list_dir", "secrets"}, {"list_dir", "src/dir"},
		{"read_file", "secrets/key"}, {"read_file", "src/key"}, {"read_file", "src/dir/key"}, {"read_file", "src/note"}, {"read_file", "src/out"}, {"read_file", "src/../secrets/key"}, {"read_file", filepath.Join(dir, "secrets/key")},
		{"edit_file", "secrets/key"}, {"write_file", "secrets/key"}, {"write_file", "src/key"},
	} {
		r := useTool(t, tools, c.tool, map[string]string{"path": c.path, "pattern": map[bool]string{true: "**/*", false: "needle-denied|root:"}[c.tool == "glob"], "old": "needle-denied", "new": "x", "content": "x"})
		for _, secret := range []string{"needle-denied", "secrets", "root:"} {
			asked := c.path != "" && strings.Contains(r.Text, c.path) // it repeats the path that was asked for
			if strings.Contains(r.Text, secret) && !asked && !strings.Contains(r.Text, "0 matches") {
				t.Errorf("%s %q shows %q: %s", c.tool, c.path, secret, r.Text)
			}
		}
		if strings.Contains(r.Text, ":needle") || strings.Contains(r.Text, "needle-asked") {
			t.Errorf("%s %q: %s", c.tool, c.path, r.Text)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "secrets", "key")); err != nil || string(data) != "needle-denied" {
		t.Errorf("%q %v", data, err)
	}
	if r := useTool(t, tools, "read_file", map[string]string{"path": "private/note"}); !strings.Contains(r.Text, "needle-asked") {
		t.Errorf("the call that was approved: %s", r.Text)
	}
	if r := useTool(t, tools, "grep", map[string]string{"pattern": "needle-free"}); !strings.Contains(r.Text, "src/a.go") {
		t.Errorf("%s", r.Text)
	}
}
