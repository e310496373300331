// Package safefile reads files that another party may have named or written: a request, a
// working directory, a setting. It reads regular files only, never waits for a named pipe,
// never reads from a device, and never holds more than the limit that the caller sets.
// It also replaces files as a whole.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/workdir"
)

// Errors of a file that is not read.
var (
	ErrSpecial  = errors.New("not a regular file")
	ErrTooLarge = errors.New("too large")
	ErrOutside  = errors.New("a link or path that leads out of the directory is not followed")
)

// Error explains why a file is not read.
type Error struct {
	Name string
	Err  error // without the name
}

func (e *Error) Error() string { return e.Name + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// WithoutName returns an error of this package without the name of the file.
func WithoutName(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Read reads a regular file of at most limit bytes. Links are followed.
func Read(path string, limit int64) ([]byte, error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, err
	}
	return readLimited(f, info, path, limit)
}

// ReadIn is Read for a file below an opened directory. No path leads out of it.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, info, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	return readLimited(f, info, filepath.Join(root.Name(), name), limit)
}

// ReadBelow is ReadIn for a directory that is not opened yet, by a path without links (workdir.Open). name may be absolute
// if it is below dir.
func ReadBelow(dir, name string, limit int64) ([]byte, error) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(dir, name)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, &Error{name, ErrOutside}
		}
		name = rel
	}
	root, _, err := workdir.OpenRoot(dir)
	if err != nil {
		return nil, fileError(dir, err)
	}
	defer func() { _ = root.Close() }()
	return ReadIn(root, name, limit)
}

// Open opens a regular file for reading. The caller closes it.
func Open(path string) (*os.File, fs.FileInfo, error) {
	return openRegular(path, os.Stat, os.OpenFile)
}

// OpenIn is Open for a file below an opened directory.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return openRegular(name, root.Stat, root.OpenFile)
}

// openRegular checks the file before it opens it, because opening a device may have an effect, and
// again afterwards, because the name may lead to another file by then.
func openRegular(name string, stat func(string) (fs.FileInfo, error), opener func(string, int, fs.FileMode) (*os.File, error)) (*os.File, fs.FileInfo, error) {
	info, err := stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = ErrSpecial
	}
	if err != nil {
		return nil, nil, fileError(name, err)
	}
	f, err := opener(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fileError(name, err)
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = ErrSpecial
	}
	if err != nil {
		return nil, nil, errors.Join(fileError(name, err), f.Close())
	}
	return f, info, nil
}

// readLimited reads and closes a file. It also cuts off a file that grows meanwhile.
func readLimited(f *os.File, info fs.FileInfo, name string, limit int64) ([]byte, error) {
	defer func() { _ = f.Close() }() // it was only read
	if info.Size() > limit {
		return nil, &Error{name, fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrTooLarge, info.Size(), limit)}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fileError(name, err)
	}
	if int64(len(data)) > limit {
		return nil, &Error{name, fmt.Errorf("%w: at most %d bytes are read", ErrTooLarge, limit)}
	}
	return data, nil
}

// fileError names the file and the reason, without the system call.
func fileError(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if LeavesRoot(err) {
		err = ErrOutside
	}
	return &Error{name, err}
}

// LeavesRoot reports whether an error of os.Root says that a path leads out of the directory. The package os exports no
// value for it; TestLeavesRoot notices another text.
func LeavesRoot(err error) bool {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		err = at.Err
	}
	return err != nil && err.Error() == "path escapes from parent"
}

var lineNumber = lazyregexp.New(`\bline (\d+)`)

// ErrorLine returns the line at which a parser reports an error (", line 3"), without what the
// error quotes of the file; "" if it reports no line. It also says which keys are known where one is not, and
// why a file has not the form that it should have.
func ErrorLine(err error) string {
	if key, ok := errors.AsType[*KeyError](err); ok {
		return ", " + key.publicText()
	}
	if form, ok := errors.AsType[*FormError](err); ok {
		return ", " + form.publicText()
	}
	if m := lineNumber.FindStringSubmatch(err.Error()); m != nil {
		return ", line " + m[1]
	}
	return ""
}

// Replace atomically writes a file that only this user can read: it is the old one or the new one,
// never half of it.
func Replace(path string, data []byte) error {
	// CreateTemp makes it 0600.
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
