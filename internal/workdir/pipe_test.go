//go:build linux

package workdir_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/troupe-run/troupe/internal/workdir"
)

// TestAttackPipeIsNoDirectory: a pipe in the place of a directory blocks no caller, as a
// root, below one, and for a program.
func TestAttackPipeIsNoDirectory(t *testing.T) {
	above, one, _ := makeTestDirs(t)
	held, err := workdir.Hold(one)
	mustSucceed(t, err)
	root, _, err := workdir.OpenRoot(one)
	mustSucceed(t, err)
	defer func() { _ = root.Close() }()
	mustSucceed(t, os.Remove(filepath.Join(one, "in")), syscall.Mkfifo(filepath.Join(one, "in"), 0o644), syscall.Mkfifo(filepath.Join(above, "pipe"), 0o644))
	if _, _, err := workdir.OpenRoot(filepath.Join(above, "pipe")); err == nil {
		t.Error("a pipe is a root")
	}
	if _, err := workdir.OpenBelow(root, "in"); err == nil {
		t.Error("a pipe is a root below another")
	}
	if _, err := held.OpenFor(filepath.Join(one, "in")); err == nil {
		t.Error("a program starts in a pipe below the directory")
	}
	if _, err := held.OpenFor(filepath.Join(above, "pipe")); err == nil {
		t.Error("a program starts in a pipe")
	}
	mustSucceed(t, os.RemoveAll(one), syscall.Mkfifo(one, 0o644))
	if _, err := held.OpenFor(one); err == nil {
		t.Error("a program starts in a pipe in the place of the directory")
	}
}
