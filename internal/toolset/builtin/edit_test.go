//go:build unix

package builtin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/toolset/builtin"
	"github.com/troupe-run/troupe/model"
)

var all = builtin.Config{Writable: []string{"**"}}

func TestEditFileReplacesTheOnePlaceAndKeepsModeAndLineEnds(t *testing.T) {
	b := newBox(t, map[string]string{"run.sh": "a\nb\nc\n", "dos.txt": "one\r\ntwo\r\nthree\r\n"})
	if err := os.Chmod(filepath.Join(b.dir, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	b.openTools(all)
	b.wantLines(b.callTool("edit_file", `{"path":"run.sh","old":"b\nc","new":"B"}`), "edited run.sh at line 2, 4 bytes")
	if got := b.readFile("run.sh"); got != "a\nB\n" {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(filepath.Join(b.dir, "run.sh")); err != nil || info.Mode().Perm() != 0o750 {
		t.Error(info.Mode(), err)
	}
	b.wantLines(b.callTool("edit_file", `{"path":"dos.txt","old":"two\nthree","new":"2\n3"}`), "edited dos.txt at line 2, 11 bytes")
	if got := b.readFile("dos.txt"); got != "one\r\n2\r\n3\r\n" {
		t.Errorf("%q", got)
	}
}

func TestAnEditThatDoesNotFitOncePlainlySaysWhy(t *testing.T) {
	b := newBox(t, map[string]string{"f": "x\ny\nx\n", "aaa": "aaa", "bin": "\x00x", "big": strings.Repeat("k\n", 40)})
	b.openTools(all)
	b.wantLines(b.callTool("edit_file", `{"path":"f","old":"x","new":"z"}`), "error: f: old stands there 2 times, at lines 1, 3; add the text around the one you mean")
	b.wantLines(b.callTool("edit_file", `{"path":"aaa","old":"aa","new":"b"}`), "error: aaa: old stands there 2 times, at lines 1, 1; add the text around the one you mean")
	b.wantLines(b.callTool("edit_file", `{"path":"big","old":"k","new":"b"}`),
		"error: big: old stands there 40 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …; add the text around the one you mean")
	b.wantLines(b.callTool("edit_file", `{"path":"f","old":"q","new":"z"}`),
		"error: f: old is not in the file; it must be the exact text, with its indentation, and without the line numbers of read_file")
	b.wantLines(b.callTool("edit_file", `{"path":"f","old":"","new":"z"}`), "error: old is empty; give the text to replace, or use write_file for a new file")
	b.wantLines(b.callTool("edit_file", `{"path":"f","old":"y","new":"y"}`), "error: old and new are the same; nothing to do")
	b.wantLines(b.callTool("edit_file", `{"path":"bin","old":"x","new":"y"}`), "error: bin: binary file: 2 bytes")
	b.wantLines(b.callTool("edit_file", `{"path":"none","old":"x","new":"y"}`), "error: none: file does not exist")
	b.wantLines(b.callTool("edit_file", `{"path":".","old":"x","new":"y"}`), "error: .: is a directory; use list_dir")
	for name, text := range map[string]string{"f": "x\ny\nx\n", "aaa": "aaa", "bin": "\x00x"} {
		if got := b.readFile(name); got != text {
			t.Errorf("%s was changed to %q", name, got)
		}
	}
}

// TestAnEditNeedsThePermissionThatWritingNeeds: and what troupe did not make is
// changed only by who may write anywhere.
func TestAnEditNeedsThePermissionThatWritingNeeds(t *testing.T) {
	b := newBox(t, map[string]string{"report.md": "mine\n", "f": "x\n"})
	b.openTools(builtin.Config{Writable: []string{"report.md", "new.md"}})
	b.wantLines(b.callTool("edit_file", `{"path":"f","old":"x","new":"y"}`), "error: writing f needs permission")
	b.wantLines(b.callTool("edit_file", `{"path":"report.md","old":"mine","new":"y"}`), "error: report.md was not made by troupe; editing it needs permission")
	b.callTool("write_file", `{"path":"new.md","content":"draft"}`)
	b.wantLines(b.callTool("edit_file", `{"path":"new.md","old":"draft","new":"done"}`), "edited new.md at line 1, 4 bytes")
}

func TestGitFilesAreNeverWritten(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a": "x\n"})
	if err := os.Symlink(".git", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	b.openTools(all)
	for _, name := range []string{".git/hooks/post-commit", "sub/.git/config", ".GIT/x", ".git"} {
		b.wantLines(b.callTool("write_file", `{"path":%q,"content":"x"}`, name), "error: "+name+": belongs to git itself and is never written")
	}
	b.wantLines(b.callTool("edit_file", `{"path":".git/config","old":"bare","new":"x"}`), "error: .git/config: belongs to git itself and is never written")
	b.wantLines(b.callTool("write_file", `{"path":"link/hooks/post-commit","content":"x"}`), "error: link: is a link; name the file it leads to")
	if _, err := os.Stat(filepath.Join(b.dir, ".git", "hooks", "post-commit")); err == nil {
		t.Error("a hook was planted")
	}
}

// TestFileSwappedForALinkIsNotFollowed swaps a link to the outside in, in
// between: a path that was fine a moment ago.
func TestFileSwappedForALinkIsNotFollowed(t *testing.T) {
	b := newBox(t, map[string]string{"f": "inside\n", "d/g": "inside\n"})
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "g"), []byte("inside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.openTools(all)
	swap := func(name, to string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.callTool("edit_file", `{"path":"d/g","old":"inside","new":"still inside"}`)
	swap("f", filepath.Join(outside, "g"))
	swap("d", outside)
	for _, name := range []string{"f", "d/g"} {
		for _, call := range []string{`{"path":"` + name + `","old":"inside","new":"out"}`} {
			if got := b.callTool("edit_file", "%s", call); !strings.HasPrefix(got, "error: ") {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := b.callTool("write_file", `{"path":%q,"content":"out"}`, name); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: %s", name, got)
		}
		if got := b.callTool("read_file", `{"path":%q}`, name); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if data, err := os.ReadFile(filepath.Join(outside, "g")); err != nil || string(data) != "inside\n" {
		t.Errorf("%q %v", data, err)
	}
}

func TestAnEditIsAnEffect(t *testing.T) {
	for _, s := range newBox(t, nil).set.Specs() {
		if s.Name == "edit_file" && s.Class != model.Effect {
			t.Error(s.Class)
		}
	}
}
