// Package workdir opens a directory that a run works in, and distinguishes it from another one that replaces it: a
// process that may rename entries of the parent directory can put a link, or another directory, under its name at any
// time. A name is therefore looked up once, without links; from then on the opened directory is used, or compared with
// what the name leads to later.
package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrReplaced: the name leads elsewhere now, or a link is on the way to it.
var ErrReplaced = errors.New("the directory is another one now: a link or another directory has taken its place")

// Open opens a directory by a path without links, as filepath.EvalSymlinks returns it; a component that is a
// link is an error. On Linux the result can only be named and compared, so that Open needs no
// right to list the directory.
func Open(path string) (*os.File, error) { return openPlain(path) }

// Real returns a path that the user of this process names as such a path: absolute, and without links. A path that cannot
// be resolved is returned as it is, so that opening it says why. It is not for a path that a client or a run names: what
// its links lead to may change after it was checked.
func Real(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	real, err := filepath.EvalSymlinks(whole)
	if err != nil {
		return whole
	}
	return real
}

// CheckSame returns an error unless a path leads, without a link, to the directory that info describes.
func CheckSame(path string, info os.FileInfo) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(now, info) {
		return fmt.Errorf("%s: %w", path, ErrReplaced)
	}
	return nil
}

// OpenRoot opens a directory by such a path for files below it. It never blocks: it refuses a pipe or a device in the
// place of the directory.
func OpenRoot(path string) (*os.Root, os.FileInfo, error) {
	f, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	root, err := os.OpenRoot(DescriptorPath(f))
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: path, Err: withoutPath(err)}
	}
	info, err := root.Stat(".")
	if err == nil {
		err = CheckSame(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	return root, info, nil
}

// OpenBelow opens a directory below an opened one for files below it.
func OpenBelow(root *os.Root, name string) (*os.Root, error) {
	f, err := root.OpenFile(name, directoryOnly, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	through := DescriptorPath(f)
	if through == f.Name() { // no path leads to the open directory itself
		return root.OpenRoot(name)
	}
	below, err := os.OpenRoot(through)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: withoutPath(err)}
	}
	return below, nil
}

// withoutPath returns an error without its path.
func withoutPath(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// IsSame reports whether an opened root is the directory that info describes.
func IsSame(root *os.Root, info os.FileInfo) bool {
	now, err := root.Stat(".")
	return err == nil && os.SameFile(now, info)
}
