package filechange

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
)

// box is a directory with a store of contents.
type box struct {
	t     *testing.T
	dir   string
	root  *os.Root
	blobs map[string][]byte
	h     History
	calls int64
}

func newBox(t *testing.T, files map[string]string) *box {
	t.Helper()
	b := &box{t: t, dir: t.TempDir(), blobs: map[string][]byte{}}
	var err error
	if b.root, err = os.OpenRoot(b.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.root.Close() })
	for name, text := range files {
		b.put(name, text)
	}
	return b
}

func (b *box) put(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) text(name string) string {
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// run records what a function changes in the directory, as the call of an agent.
func (b *box) run(agent string, do func()) []Change {
	b.t.Helper()
	s := Take(b.t.Context(), b.root, nil, nil)
	do()
	changes, lost, _ := s.Compare(b.root)
	b.record(agent, changes, lost)
	return changes
}

func (b *box) record(agent string, changes []Change, lost string) {
	b.calls++
	var files []spec.FileChange
	for _, c := range changes {
		files = append(files, spec.FileChange{Path: c.Path, Before: b.store(c.Before), After: b.store(c.After)})
	}
	b.h.Add(agent, "1-0", mailbox.Stamp{At: b.calls}, files, lost)
}

func (b *box) store(s State) spec.FileState {
	out := s.Record()
	if s.Kept {
		out.Ref = mailbox.BlobRef(s.Data)
		b.blobs[out.Ref] = s.Data
	}
	return out
}

func (b *box) undo(agent string) ([]string, error) {
	return Undo(b.root, b.h.Nets(agent), func(ref string) ([]byte, error) {
		if data, ok := b.blobs[ref]; ok {
			return data, nil
		}
		return nil, mailbox.ErrNoBlob
	}, false)
}

// TestWhatACommandChangesIsTakenBack: new, changed and deleted files, in new and old directories, with their modes.
//
//behaviour:shows K13
func TestWhatACommandChangesIsTakenBack(t *testing.T) {
	t.Parallel()
	b := newBox(t, map[string]string{"a": "one\n", "sub/b": "two\n", "sub/c": "three\n", "same": "x", ".git/config": "mine"})
	changes := b.run("root", func() {
		b.put("a", "ONE\n")
		b.put("new/deep/d", "four")
		b.put(".git/config", "theirs")
		b.put("empty", "")
		for _, err := range []error{os.RemoveAll(filepath.Join(b.dir, "sub")), os.Chmod(filepath.Join(b.dir, "same"), 0o700), os.Symlink("/etc/passwd", filepath.Join(b.dir, "link"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	var names []string
	for _, c := range changes {
		names = append(names, c.Path)
	}
	if got := strings.Join(names, " "); got != "a empty new/deep/d same sub/b sub/c" {
		t.Errorf("changed: %s", got)
	}
	if paths, err := b.undo(""); err != nil || len(paths) != 6 {
		t.Fatalf("%v %v", paths, err)
	}
	for name, want := range map[string]string{"a": "one\n", "sub/b": "two\n", "sub/c": "three\n", "new/deep/d": "(none)", "empty": "(none)", "same": "x", ".git/config": "theirs"} {
		if got := b.text(name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if info, err := os.Stat(filepath.Join(b.dir, "same")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", info, err)
	}
	if paths, err := b.undo(""); err != nil || len(paths) != 0 {
		t.Errorf("a second time: %v %v", paths, err)
	}
	rest, err := filepath.Glob(filepath.Join(b.dir, "*", ".troupe-undo-*"))
	if err != nil || rest != nil {
		t.Errorf("%v %v", rest, err)
	}
}

// TestAFileThatAPersonEditedKeepsAll: if one file is not as the run left it, none is taken back.
//
//behaviour:shows K13
func TestAFileThatAPersonEditedKeepsAll(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(b *box) error{
		"edited":          func(b *box) error { b.put("b", "mine"); return nil },
		"deleted":         func(b *box) error { return os.Remove(filepath.Join(b.dir, "b")) },
		"made again":      func(b *box) error { b.put("gone", "mine"); return nil },
		"a directory":     func(b *box) error { return os.Mkdir(filepath.Join(b.dir, "gone"), 0o755) },
		"a link":          func(b *box) error { return os.Symlink("a", filepath.Join(b.dir, "gone")) },
		"a dangling link": func(b *box) error { return os.Symlink("/nowhere", filepath.Join(b.dir, "gone")) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, map[string]string{"a": "1", "b": "1", "gone": "1"})
			b.run("root", func() {
				b.put("a", "2")
				b.put("b", "2")
				if err := os.Remove(filepath.Join(b.dir, "gone")); err != nil {
					t.Fatal(err)
				}
			})
			if err := edit(b); err != nil {
				t.Fatal(err)
			}
			if _, err := b.undo(""); !errors.Is(err, ErrRefused) || b.text("a") != "2" {
				t.Errorf("%v; a is %q", err, b.text("a"))
			}
		})
	}
}

// TestOneAgentIsTakenBack: what another agent made of a file later, or between, refuses it.
func TestOneAgentIsTakenBack(t *testing.T) {
	t.Parallel()
	b := newBox(t, map[string]string{"own": "1", "shared": "1"})
	b.run("root", func() { b.put("own", "2") })
	b.run("root-1-0", func() { b.put("shared", "2") })
	b.run("root", func() { b.put("shared", "3") })
	if _, err := b.undo("root-1-0"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "root changed it, too") {
		t.Errorf("%v", err)
	}
	if _, err := b.undo("root"); err != nil || b.text("own") != "1" || b.text("shared") != "2" {
		t.Errorf("%v: %s %s", err, b.text("own"), b.text("shared"))
	}
	if _, err := b.undo("root-1-0"); !errors.Is(err, ErrRefused) {
		t.Errorf("the logs still say that root changed it: %v", err)
	}
}

// TestWhatIsNotRecordedBetweenTwoCallsRefuses: an edit of a person between two calls would be lost.
func TestWhatIsNotRecordedBetweenTwoCallsRefuses(t *testing.T) {
	t.Parallel()
	b := newBox(t, map[string]string{"a": "1"})
	b.run("root", func() { b.put("a", "2") })
	b.put("a", "mine")
	b.run("root", func() { b.put("a", "3") })
	if _, err := b.undo(""); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "not recorded") || b.text("a") != "3" {
		t.Errorf("%v", err)
	}
}

// TestAttackHostileRecordsChangeNothing: whatever logs and store say, only files of the directory are changed,
// and only to what their hash says.
//
//behaviour:shows K13
func TestAttackHostileRecordsChangeNothing(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "victim"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../victim", "/etc/hosts", ".", "", "a/../../victim", "link/victim", ".git/hooks/pre-commit", "sub/.GIT/config", "a\x00b", "in/victim", "a/", `..\victim`, "pipe", "victim-link", strings.Repeat("x", 5000)} {
		b := newBox(t, map[string]string{"a": "2", "in2/victim": "2", ".git/hooks/pre-commit": "2", "sub/.GIT/config": "2"})
		for link, to := range map[string]string{"link": outside, "in": "in2", "victim-link": "a"} {
			if err := os.Symlink(to, filepath.Join(b.dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		b.record("root", []Change{{Path: name, Before: Content([]byte("evil"), 0o644), After: Content([]byte("2"), 0o644)}}, "")
		if paths, err := b.undo(""); !errors.Is(err, ErrRefused) {
			t.Errorf("%.40q: %v %v", name, paths, err)
		}
		for _, victim := range []string{"a", "in2/victim", ".git/hooks/pre-commit", "sub/.GIT/config"} {
			if got := b.text(victim); got != "2" {
				t.Errorf("%.40q: %s is %q", name, victim, got)
			}
		}
	}
	if data, err := os.ReadFile(filepath.Join(outside, "victim")); err != nil || string(data) != "2" {
		t.Errorf("%s %v", data, err)
	}
	b := newBox(t, map[string]string{"a": "2"})
	b.record("root", []Change{{Path: "a", Before: Content([]byte("old"), 0o4755|fs.ModeSetuid), After: Content([]byte("2"), 0o644)}}, "")
	ref := mailbox.BlobRef([]byte("old"))
	b.blobs[ref] = []byte("evil")
	if _, err := b.undo(""); !errors.Is(err, ErrRefused) || b.text("a") != "2" {
		t.Errorf("another content: %v", err)
	}
	b.blobs[ref] = []byte("old")
	if _, err := b.undo(""); err != nil || b.text("a") != "old" {
		t.Errorf("%v", err)
	}
	if info, err := os.Stat(filepath.Join(b.dir, "a")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestAHiddenChangeIsSeen: a command that sets the times of a file back is seen to have changed it.
func TestAHiddenChangeIsSeen(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // other systems do not tell when an inode changed
	}
	b := newBox(t, map[string]string{"a": "1"})
	path := filepath.Join(b.dir, "a")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.run("root", func() {
		for deadline := time.Now().Add(5 * time.Second); ; { // the clock of a file system may be coarse
			b.put("a", "2")
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			now, err := os.Stat(path)
			if err != nil || changeTime(now) != changeTime(info) || time.Now().After(deadline) {
				return
			}
		}
	})) != 1 {
		t.Error("the change was not seen")
	}
}

// TestADirectoryThatIsTooLargeIsNotCompared: the record says so.
func TestADirectoryThatIsTooLargeIsNotCompared(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	deep := strings.Repeat("d/", depthMax+2) + "f"
	b.put(deep, "1")
	s := Take(t.Context(), b.root, nil, nil)
	if changes, lost, _ := s.Compare(b.root); changes != nil || !strings.Contains(lost, "levels deep") {
		t.Errorf("%v %q", changes, lost)
	}
	b = newBox(t, map[string]string{"large": strings.Repeat("x", KeptFileBytesMax+1)})
	b.run("root", func() { b.put("large", "small") })
	if _, err := b.undo(""); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "not kept") {
		t.Errorf("%v", err)
	}
}
