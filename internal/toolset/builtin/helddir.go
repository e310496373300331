package builtin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/troupe-run/troupe/internal/workdir"
)

// heldDir is a directory of a repository that is held open: a directory that takes its name later is not read. Git
// works with names, so its answer is discarded if the name leads elsewhere by then.
type heldDir struct {
	path string // without links
	root *os.Root
	info fs.FileInfo
}

func openHeldDir(path string) (*heldDir, error) {
	root, info, err := workdir.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &heldDir{path, root, info}, nil
}

// openBelow opens a subdirectory that is not a link.
func (g *heldDir) openBelow(name string) (*heldDir, error) {
	info, err := g.root.Lstat(name)
	if err != nil {
		return nil, errNoRepository
	}
	if !info.IsDir() {
		return nil, errElsewhere
	}
	root, err := workdir.OpenBelow(g.root, name)
	if err != nil {
		return nil, errNoRepository
	}
	if !workdir.IsSame(root, info) {
		_ = root.Close()
		return nil, errSwapped
	}
	return &heldDir{filepath.Join(g.path, name), root, info}, nil
}

func (g *heldDir) closeDir() { _ = g.root.Close() }

// openFile opens a regular file of at most limit bytes that is not a link. It never blocks.
func (g *heldDir) openFile(name string, limit int64) (*os.File, error) {
	info, err := g.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, ErrSpecial
	}
	f, err := g.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", name, ErrSpecial)
	}
	return f, nil
}

// readText reads such a file, without the white space at its end.
func (g *heldDir) readText(name string, limit int64) (string, error) {
	f, err := g.openFile(name, limit)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return strings.TrimRight(string(data), " \t\r\n"), err
}

// copyTo copies such a file; it does nothing if there is none.
func (g *heldDir) copyTo(name, to string, limit int64) error {
	f, err := g.openFile(name, limit)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("git: %w", err)
	}
	_, err = io.Copy(out, io.LimitReader(f, limit))
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("git: %w", err)
	}
	return nil
}

// heldDirs returns the directories of a repository that were opened.
func (r *gitRepository) heldDirs() (list []*heldDir) {
	for _, g := range []*heldDir{r.top, r.dir, r.common, r.objects} {
		if g != nil {
			list = append(list, g)
		}
	}
	return list
}

func (r *gitRepository) closeDirs() {
	for _, g := range r.heldDirs() {
		g.closeDir()
	}
}

// checkUnmoved checks that the names of all directories still lead to the opened ones.
func (r *gitRepository) checkUnmoved() error {
	for _, g := range r.heldDirs() {
		if workdir.CheckSame(g.path, g.info) != nil {
			return errSwapped
		}
	}
	return nil
}
