package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/workdir"
)

// Limits of a directory that is copied for a fork.
const (
	forkFilesMax = 200_000
	forkBytesMax = 4 << 30
	forkLeftMax  = 20 // what was not copied is listed up to this number
)

// dirCopy copies a directory so that no write to the copy reaches the original.
type dirCopy struct {
	from, to string // without links
	source   *os.Root
	target   *os.Root
	files    int
	bytes    int64
	left     []string // not copied
}

// copyTree copies a directory to a path that does not exist, and lists what it left out. Links stay links; one that
// leads into the original leads into the copy. It shares no hard link. Where the file system can, the copies of files
// share their blocks until one of them is written (copy_file_range on Linux).
func copyTree(from, to string) (left []string, err error) {
	c := dirCopy{}
	if c.from, err = filepath.EvalSymlinks(from); err != nil {
		return nil, exit.UsageError("name a copy of it with --dir", "the directory of the run cannot be read: %v", err)
	}
	if info, err := os.Lstat(filepath.Join(c.from, ".git")); err == nil && info.Mode().IsRegular() {
		return nil, exit.UsageError("copy it with git clone, and name the copy with --dir", "%s is a worktree of git: its repository is elsewhere, and git in a copy would write there", c.from)
	}
	if c.source, _, err = workdir.OpenRoot(c.from); err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	defer func() { _ = c.source.Close() }()
	above, err := filepath.EvalSymlinks(filepath.Dir(to))
	if err != nil {
		return nil, exit.UsageError("name a directory in one that exists", "--dir: %v", err)
	}
	c.to = filepath.Join(above, filepath.Base(to))
	if rest, err := filepath.Rel(c.from, c.to); err == nil && filepath.IsLocal(rest) {
		return nil, exit.UsageError("name one outside of it", "%s is in the directory of the run, %s", c.to, c.from)
	}
	if err := os.Mkdir(c.to, 0o700); err != nil {
		return nil, exit.UsageError("name a directory that does not exist", "--dir: %v", err)
	}
	if c.target, _, err = workdir.OpenRoot(c.to); err == nil {
		err = fs.WalkDir(c.source.FS(), ".", c.copyEntry)
		err = errors.Join(err, c.target.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fork: copy %s: %w", c.from, err), os.RemoveAll(c.to))
	}
	return c.left, nil
}

func (c *dirCopy) copyEntry(path string, d fs.DirEntry, err error) error {
	if errors.Is(err, fs.ErrNotExist) && path != "." { // it was removed meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.files++; c.files > forkFilesMax {
		return exit.UsageError("copy it yourself, and name the copy with --dir", "the directory has more than %d files", forkFilesMax)
	}
	switch {
	case path == ".":
		return nil
	case d.IsDir():
		return c.target.Mkdir(path, info.Mode().Perm()|0o700)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.copyLink(path)
	case info.Mode().IsRegular():
		return c.copyFile(path, info)
	}
	if len(c.left) < forkLeftMax {
		c.left = append(c.left, path+" is no file, no directory and no link")
	}
	return nil
}

// copyLink copies a link. One that names the original by its path leads into the copy.
func (c *dirCopy) copyLink(path string) error {
	to, err := c.source.Readlink(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if rest, found := strings.CutPrefix(to, c.from); found && (rest == "" || rest[0] == filepath.Separator) {
		to = c.to + rest
	}
	return c.target.Symlink(to, path)
}

func (c *dirCopy) copyFile(path string, info fs.FileInfo) (err error) {
	in, err := c.source.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have taken its place
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	now, err := in.Stat()
	if err != nil {
		return err
	}
	if !now.Mode().IsRegular() {
		return fmt.Errorf("%s was replaced while it was copied", path)
	}
	if c.bytes += now.Size(); c.bytes > forkBytesMax {
		return exit.UsageError("copy it yourself, and name the copy with --dir", "the directory has more than %d bytes", int64(forkBytesMax))
	}
	out, err := c.target.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close()); err != nil {
		return err
	}
	return c.target.Chtimes(path, info.ModTime(), info.ModTime())
}
