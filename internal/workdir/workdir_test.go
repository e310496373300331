package workdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-run/troupe/internal/workdir"
)

// makeTestDirs is a directory without links with two more in it.
func makeTestDirs(t *testing.T) (above, one, other string) {
	t.Helper()
	above, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	one, other = filepath.Join(above, "one"), filepath.Join(above, "other")
	for _, dir := range []string{filepath.Join(one, "in"), filepath.Join(other, "in")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return above, one, other
}

func mustSucceed(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestAttackLinkOnTheWayIsNotFollowed(t *testing.T) {
	above, one, other := makeTestDirs(t)
	f, err := workdir.Open(filepath.Join(one, "in"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	mustSucceed(t, err, f.Close())
	mustSucceed(t, os.Rename(one, filepath.Join(above, "aside")), os.Symlink(other, one))
	for name, err := range map[string]error{"below a link": workdir.CheckSame(filepath.Join(one, "in"), info), "a link": workdir.CheckSame(one, info),
		"another": workdir.CheckSame(filepath.Join(other, "in"), info)} {
		if !errors.Is(err, workdir.ErrReplaced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := workdir.OpenRoot(filepath.Join(one, "in")); !errors.Is(err, workdir.ErrReplaced) {
		t.Errorf("as a root: %v", err)
	}
	mustSucceed(t, os.Remove(one), os.Rename(filepath.Join(above, "aside"), one), workdir.CheckSame(filepath.Join(one, "in"), info))
	if err := workdir.CheckSame(filepath.Join(above, "none"), info); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not there: %v", err)
	}
}

// TestAttackHeldDirectoryIsNotAnother: one that was removed and made again is the same; one in its place is not.
func TestAttackHeldDirectoryIsNotAnother(t *testing.T) {
	above, one, other := makeTestDirs(t)
	d, err := workdir.Hold(one)
	mustSucceed(t, err)
	open := func() error {
		f, err := d.Open()
		if err == nil {
			err = f.Close()
		}
		return err
	}
	mustSucceed(t, open(), os.RemoveAll(one))
	if err := open(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
	mustSucceed(t, os.Mkdir(one, 0o755), open(), os.Rename(one, filepath.Join(above, "aside")), os.Rename(other, one))
	if err := open(); !errors.Is(err, workdir.ErrReplaced) {
		t.Errorf("another one: %v", err)
	}
	mustSucceed(t, os.Rename(one, other), os.Rename(filepath.Join(above, "aside"), one), open())
}
