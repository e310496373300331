package filechange

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMovedFilesOutliveAnUndo: a command moves more files of a person than are recorded. Those that are not recorded
// as deleted must not be taken for new ones, or an undo would delete the only copy.
func TestMovedFilesOutliveAnUndo(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range ChangesMax + 50 {
		files[fmt.Sprintf("src/f%03d", i)] = fmt.Sprintf("person %d", i)
	}
	b := newBox(t, files)
	b.run("root", func() {
		if err := os.Rename(filepath.Join(b.dir, "src"), filepath.Join(b.dir, "a")); err != nil {
			t.Fatal(err)
		}
	})
	if len(b.h.Lost) != 1 {
		t.Errorf("lost: %q", b.h.Lost)
	}
	if _, err := b.undo(""); err != nil {
		t.Error(err)
	}
	for name, want := range files {
		if before, after := b.text(name), b.text("a"+strings.TrimPrefix(name, "src")); before != want && after != want {
			t.Errorf("%s is gone: %q %q", name, before, after)
		}
	}
}

// TestAFileWithAnOddNameOutlivesAnUndo: a file whose name has a backslash is a file like others.
func TestAFileWithAnOddNameOutlivesAnUndo(t *testing.T) {
	t.Parallel()
	if os.PathSeparator != '/' {
		return // there it separates directories
	}
	b := newBox(t, map[string]string{`a\b`: "person"})
	b.run("root", func() {
		if err := os.Rename(filepath.Join(b.dir, `a\b`), filepath.Join(b.dir, "ab")); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := b.undo(""); err != nil || b.text(`a\b`) != "person" || b.text("ab") != "(none)" {
		t.Errorf("%v: %s, %s", err, b.text(`a\b`), b.text("ab"))
	}
}

// TestAPathThatIsTooLongOutlivesAnUndo: where a file cannot be recorded, no other is taken for a new one.
func TestAPathThatIsTooLongOutlivesAnUndo(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(strings.Repeat("d", 100)+"/", 6) + "f"
	b := newBox(t, map[string]string{long: "person"})
	b.run("root", func() {
		if err := os.Rename(filepath.Join(b.dir, long), filepath.Join(b.dir, "short")); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := b.undo(""); err != nil || b.text("short") != "person" || len(b.h.Lost) != 1 {
		t.Errorf("%v: %s, lost %q", err, b.text("short"), b.h.Lost)
	}
}

// TestAClosedDirectoryOutlivesAnUndo: files in a directory that could not be read before the command are not new.
func TestAClosedDirectoryOutlivesAnUndo(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // modes do not close directories there
	}
	mode := func(b *box, mode os.FileMode) {
		if err := os.Chmod(filepath.Join(b.dir, "closed"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, after := range map[string]os.FileMode{"opened": 0o700, "closed again": 0} {
		b := newBox(t, map[string]string{"closed/f": "person", "target": "old", "other": "1"})
		s := Take(t.Context(), b.root, nil, nil)
		for path := range s.files { // root reads closed directories, so the snapshot is made by hand
			if strings.HasPrefix(path, "closed/") {
				delete(s.files, path)
			}
		}
		info, err := b.root.Lstat("closed")
		if err != nil {
			t.Fatal(err)
		}
		s.closed["closed"] = info
		waitForClock(t, b, "closed")
		mode(b, 0o755)
		if err := os.Rename(filepath.Join(b.dir, "closed/f"), filepath.Join(b.dir, "target")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(b.dir, "other")); err != nil {
			t.Fatal(err)
		}
		mode(b, after)
		changes, lost, _ := s.Compare(b.root)
		b.record("root", changes, lost)
		if _, err := b.undo(""); err != nil || b.text("target") != "person" || b.text("other") != "1" || lost == "" {
			t.Errorf("%s: %v, target %q, other %q, lost %q", name, err, b.text("target"), b.text("other"), lost)
		}
		mode(b, 0o755)
	}
}

// waitForClock waits until a change of an inode gets a later time than its last one.
func waitForClock(t *testing.T, b *box, name string) {
	t.Helper()
	info, err := b.root.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		if err := os.Chmod(filepath.Join(b.dir, name), info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
		if now, err := b.root.Lstat(name); err != nil || changeTime(now) != changeTime(info) {
			return
		}
	}
}

// TestAModeThatAPersonSetStays: what a person has closed is not opened again by an undo of its content.
func TestAModeThatAPersonSetStays(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // it has no such modes
	}
	b := newBox(t, map[string]string{"content": "1", "mode": "1"})
	path := func(name string) string { return filepath.Join(b.dir, name) }
	chmod := func(name string, mode os.FileMode) {
		if err := os.Chmod(path(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	b.run("root", func() { b.put("content", "22") })
	chmod("content", 0o600)
	if _, err := b.undo(""); err != nil || b.text("content") != "1" {
		t.Errorf("%v: %s", err, b.text("content"))
	}
	if info, err := os.Stat(path("content")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	b.run("root", func() { b.put("mode", "22"); chmod("mode", 0o755) })
	chmod("mode", 0o600)
	if _, err := b.undo(""); !errors.Is(err, ErrRefused) || b.text("mode") != "22" {
		t.Errorf("%v: %s", err, b.text("mode"))
	}
}
