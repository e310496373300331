// Package workdir opens a directory that a run works in, and tells it from another one that takes its place: whoever
// may rename in the directory above can put a link, or another directory, under its name at any time. A name is
// therefore looked up once, without links, and what was opened is used from then on or compared with what the name
// leads to later.
package workdir

import (
	"errors"
	"fmt"
	"os"
)

// ErrReplaced: the name leads to something else now, or a link is on the way to it.
var ErrReplaced = errors.New("the directory is another one now: a link or another directory has taken its place")

// Open opens a directory by a path of which no part may be a link, as filepath.EvalSymlinks gives it. On Linux what
// is opened can only be named and compared, so that no right to list it is needed.
func Open(path string) (*os.File, error) { return openPlain(path) }

// Check reports whether a path leads, without a link, to the directory that info describes.
func Check(path string, info os.FileInfo) error {
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

// Root opens a directory by such a path for files below it.
func Root(path string) (*os.Root, os.FileInfo, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = Check(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	return root, info, nil
}

// Same reports whether an opened root is the directory that info describes.
func Same(root *os.Root, info os.FileInfo) bool {
	now, err := root.Stat(".")
	return err == nil && os.SameFile(now, info)
}
