//go:build unix

package safefile

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/troupe-run/troupe/internal/workdir"
)

const limit = 1 << 10

func writeFile(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
}

func createLink(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func TestAttackSpecialAndLargeFilesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, at("fits"), limit)
	writeFile(t, at("large"), limit+1)
	createLink(t, "/dev/zero", at("zero"))
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for name, want := range map[string]error{"fits": nil, "large": ErrTooLarge, "zero": ErrSpecial, "pipe": ErrSpecial, "socket": ErrSpecial, ".": ErrSpecial, "none": fs.ErrNotExist} {
		data, err := Read(at(name), limit)
		if !errors.Is(err, want) || err == nil && len(data) != limit {
			t.Errorf("Read %s: %d bytes, %v", name, len(data), err)
		}
		if name == "zero" {
			want = ErrOutside
		}
		if data, err = ReadBelow(dir, name, limit); !errors.Is(err, want) || err == nil && len(data) != limit {
			t.Errorf("ReadBelow %s: %d bytes, %v", name, len(data), err)
		}
	}
}

func TestAttackPathsCannotLeaveTheDirectory(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(out, "secret"), 3)
	createLink(t, filepath.Join(out, "secret"), filepath.Join(dir, "link"))
	createLink(t, out, filepath.Join(dir, "sub"))
	for _, name := range []string{"link", "sub/secret", filepath.Join(out, "secret"), "../" + filepath.Base(out) + "/secret"} {
		if data, err := ReadBelow(dir, name, limit); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
	writeFile(t, filepath.Join(dir, "own"), 3)
	if data, err := ReadBelow(dir, filepath.Join(dir, "own"), limit); err != nil || len(data) != 3 {
		t.Errorf("%q %v", data, err)
	}
}

// What is on the way to the directory may have changed since its path was checked.
func TestAttackDirectoryBehindALinkIsNotRead(t *testing.T) {
	top, out := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(out, "secret"), 3)
	createLink(t, out, filepath.Join(top, "link"))
	if err := syscall.Mkfifo(filepath.Join(top, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"link", "pipe"} {
		if data, err := ReadBelow(filepath.Join(top, dir), "secret", limit); !errors.Is(err, workdir.ErrReplaced) {
			t.Errorf("%s: %q, %v", dir, data, err)
		}
	}
}

// LeavesRoot depends on a text of package os.
func TestLeavesRoot(t *testing.T) {
	dir := t.TempDir()
	createLink(t, filepath.Dir(dir), filepath.Join(dir, "link"))
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range []string{"../x", "link/x"} {
		if _, err := root.Stat(name); !LeavesRoot(err) {
			t.Errorf("Stat %s: %v", name, err)
		}
		if err := root.Rename(name, "y"); !LeavesRoot(err) {
			t.Errorf("Rename %s: %v", name, err)
		}
	}
	if _, err := root.Stat("none"); LeavesRoot(err) || LeavesRoot(nil) {
		t.Error(err)
	}
}
