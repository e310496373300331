package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// HeldDirectory is a directory that is held open. It distinguishes a directory that was removed and made again under
// its name, which is the same directory for everyone who works in it, from one that was put in its place.
type HeldDirectory struct {
	path string // absolute, without links

	mu   sync.Mutex
	file *os.File // nil: it did not exist yet
}

// Hold holds a directory of whose path no component may be a link. A directory that cannot be opened is held from
// the first Open that succeeds: until then, Open returns the reason.
func Hold(path string) (*HeldDirectory, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &HeldDirectory{path: abs}
	if f, err := Open(abs); err == nil {
		d.file = f
	}
	return d, nil
}

// Open opens the directory at the path if it is the one that is held, or one that was made after that one
// was removed. The caller closes it.
func (d *HeldDirectory) Open() (*os.File, error) {
	now, err := Open(d.path)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file != nil && !isSameFile(d.file, now) && !isRemovedFile(d.file) {
		_ = now.Close()
		return nil, fmt.Errorf("%s: %w", d.path, ErrReplaced)
	}
	if d.file == nil || !isSameFile(d.file, now) {
		again, err := Open(d.path)
		if err != nil || !isSameFile(again, now) {
			_ = now.Close()
			return nil, fmt.Errorf("%s: %w", d.path, errors.Join(ErrReplaced, err))
		}
		if d.file != nil {
			_ = d.file.Close()
		}
		d.file = again
	}
	return now, nil
}

// OpenFor opens a directory in which a program is to start: the one that is held, or one below it. Any other is
// opened by its name.
func (d *HeldDirectory) OpenFor(path string) (*os.File, error) {
	rel, ok := Below(d.path, path)
	if !ok {
		return os.OpenFile(path, directoryOnly, 0)
	}
	at, err := d.Open()
	if err != nil || rel == "." {
		return at, err
	}
	defer func() { _ = at.Close() }()
	root, err := os.OpenRoot(DescriptorPath(at))
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: d.path, Err: withoutPath(err)}
	}
	defer func() { _ = root.Close() }()
	return root.OpenFile(rel, directoryOnly, 0)
}

func isSameFile(a, b *os.File) bool {
	one, err := a.Stat()
	other, bad := b.Stat()
	return err == nil && bad == nil && os.SameFile(one, other)
}

// isRemovedFile reports whether an open directory has no name any more.
func isRemovedFile(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && IsRemoved(info)
}
