package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/internal/workdir"
)

// Limits of a directory that is copied for a fork.
const (
	forkFilesMax  = 200_000
	forkBytesMax  = 4 << 30
	forkNotesMax  = 20       // notes about files that are no copies, apart from hidden directories
	forkChunkSize = 16 << 20 // a copy looks for an interrupt after each
)

// partialMark is in the name of a copy that is not complete yet: behind the directory, before the id of the run.
const partialMark = ".partial-"

// dirCopy copies a directory so that no write to the copy reaches the original.
type dirCopy struct {
	ctx      context.Context
	from, to string // without links
	partial  string // where the copy is made
	source   *os.Root
	target   *os.Root
	hidden   []hiddenDir
	files    int
	bytes    int64
	links    []string // those that may lead out of the copy
	notes    []string // about files that are left out because no agent sees them
	warnings []string // about what is no copy
	more     int      // warnings that are left out
}

// hiddenDir is a directory that agents never see.
type hiddenDir struct {
	path string // without links
	info fs.FileInfo
}

// copyTree makes a partial copy of a directory, to become to, which does not exist, with finish. Links stay links; one
// that leads into the original leads into the copy. It shares no hard link. Where the file system can, the copies of
// files share their blocks until one of them is written (copy_file_range on Linux). It leaves out the hidden
// directories. An error leaves nothing behind.
func copyTree(ctx context.Context, from, to, run string, hidden []string) (*dirCopy, error) {
	c := &dirCopy{ctx: ctx}
	err := c.findPlaces(from, to, run)
	if err != nil {
		return nil, err
	}
	if err := c.findHidden(hidden); err != nil {
		return nil, err
	}
	if c.source, _, err = workdir.OpenRoot(c.from); err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	defer func() { _ = c.source.Close() }()
	if err := os.Mkdir(c.partial, 0o700); err != nil {
		return nil, exit.UsageError("name a directory in one that you can write", "--dir: %v", err)
	}
	if c.target, _, err = workdir.OpenRoot(c.partial); err == nil {
		if err = fs.WalkDir(c.source.FS(), ".", c.copyEntry); err == nil {
			err = c.turnLinks()
		}
		err = errors.Join(err, c.target.Close())
	}
	if err != nil {
		return nil, c.drop(fmt.Errorf("fork: copy %s: %w", c.from, err))
	}
	if c.more > 0 {
		c.warnings = append(c.warnings, fmt.Sprintf("%d more files are left out or lead out of the copy", c.more))
	}
	return c, nil
}

// finish gives the copy its name.
func (c *dirCopy) finish() error {
	if err := c.ctx.Err(); err != nil {
		return c.drop(err)
	}
	if _, err := os.Lstat(c.to); !errors.Is(err, fs.ErrNotExist) {
		return c.drop(exit.UsageError("name another directory with --dir", "%s was made by another process meanwhile", c.to))
	}
	if err := os.Rename(c.partial, c.to); err != nil {
		return c.drop(fmt.Errorf("fork: %w", err))
	}
	return nil
}

// drop removes a copy that is not complete.
func (c *dirCopy) drop(err error) error { return errors.Join(err, os.RemoveAll(c.partial)) }

func (c *dirCopy) findPlaces(from, to, run string) (err error) {
	if c.from, err = filepath.EvalSymlinks(from); err != nil {
		return exit.UsageError("name a copy of it with --dir", "the directory of the run cannot be read: %v", err)
	}
	if info, err := os.Lstat(filepath.Join(c.from, gitName)); err == nil && info.Mode().IsRegular() {
		return exit.UsageError("copy it with git clone, and name the copy with --dir",
			"%s is a worktree of git: its repository is elsewhere, and git in a copy would write there", c.from)
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(to))
	if err != nil {
		return exit.UsageError("name a directory in one that exists", "--dir: %v", err)
	}
	if above, err = filepath.Abs(above); err != nil {
		return fmt.Errorf("fork: %w", err)
	}
	c.to = filepath.Join(above, filepath.Base(to))
	if workdir.IsBelow(c.from, c.to) {
		return exit.UsageError("name one outside of it", "%s is in the directory of the run, %s", c.to, c.from)
	}
	if _, err := os.Lstat(c.to); err == nil {
		return exit.UsageError("name a directory that does not exist", "--dir: %s exists", c.to)
	}
	c.partial = c.to + partialMark + run
	return refuseLeftover(above, filepath.Base(c.to)+partialMark)
}

// refuseLeftover fails if a copy to the same directory is not complete.
func refuseLeftover(above, prefix string) error {
	entries, err := os.ReadDir(above)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("fork: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			return exit.UsageError("if no other command makes it now, remove it",
				"%s is a part of a copy that has not been completed", filepath.Join(above, e.Name()))
		}
	}
	return nil
}

// findHidden looks at the directories that are left out, and refuses to copy one.
func (c *dirCopy) findHidden(names []string) error {
	for _, name := range names {
		abs, err := filepath.Abs(name)
		if err != nil {
			return fmt.Errorf("fork: %w", err)
		}
		h := hiddenDir{path: trust.ResolvePath(abs)}
		if workdir.IsBelow(h.path, c.from) {
			return exit.UsageError("name a directory that you made yourself with --dir",
				"%s is in %s, which decides what a node executes: it is not copied", c.from, abs)
		}
		if info, err := os.Stat(h.path); err == nil {
			h.info = info
		}
		c.hidden = append(c.hidden, h)
	}
	return nil
}

func (c *dirCopy) isHidden(path string, info fs.FileInfo) bool {
	for _, h := range c.hidden {
		if h.path == filepath.Join(c.from, path) || h.info != nil && os.SameFile(h.info, info) {
			return true
		}
	}
	if !info.IsDir() {
		return false
	}
	_, err := c.source.Lstat(filepath.Join(path, statedir.LockName)) // the state of another node
	return err == nil
}

// warn adds a warning, up to a number of them.
func (c *dirCopy) warn(format string, args ...any) {
	if len(c.warnings) >= forkNotesMax {
		c.more++
		return
	}
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

func (c *dirCopy) copyEntry(path string, d fs.DirEntry, err error) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if path != "." && c.isLeftOut(path, err) {
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
		return exit.UsageError("copy it yourself, and name the copy with --dir",
			"the directory has more than %d files", forkFilesMax)
	}
	switch {
	case path == "." && c.isHidden(path, info):
		return exit.UsageError("fork a run that works elsewhere", "it decides what a node executes")
	case path == ".":
		return nil
	case c.isHidden(path, info):
		c.notes = append(c.notes, "not copied: "+path+" decides what a node executes, and no agent sees it")
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	case c.leadsGitAway(path, info):
		return nil
	case d.IsDir():
		return c.target.Mkdir(path, info.Mode().Perm()|0o700)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.copyLink(path)
	case info.Mode().IsRegular():
		return c.copyFile(path, info)
	}
	c.warn("not copied: %s is no file, no directory and no link", path)
	return nil
}

// isLeftOut reports whether a copy goes on without a file that it cannot read.
func (c *dirCopy) isLeftOut(path string, err error) bool {
	if errors.Is(err, fs.ErrPermission) {
		c.warn("not copied: %s cannot be read: permission denied", path)
		return true
	}
	return errors.Is(err, fs.ErrNotExist) // it was removed meanwhile
}

func (c *dirCopy) copyFile(path string, info fs.FileInfo) (err error) {
	in, err := c.source.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have taken its place
	if c.isLeftOut(path, err) {
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
	out, err := c.target.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if err = errors.Join(c.copyContent(out, in), out.Chmod(info.Mode().Perm()), out.Close()); err != nil {
		return err
	}
	return c.target.Chtimes(path, info.ModTime(), info.ModTime())
}

func (c *dirCopy) copyContent(out, in *os.File) error {
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(out, in, forkChunkSize)
		if c.bytes += n; c.bytes > forkBytesMax {
			return exit.UsageError("copy it yourself, and name the copy with --dir",
				"the directory has more than %d bytes", int64(forkBytesMax))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
