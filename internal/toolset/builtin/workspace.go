package builtin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/safefile"
)

// Errors that a model reads when it names a path that the tools cannot use.
var (
	ErrOutside   = errors.New("outside of the directory")
	ErrDirectory = errors.New("is a directory; use list_dir")
	ErrSpecial   = errors.New("is not a regular file")

	errElsewhereLinked = errors.New("a link leads out of the part of the directory that is granted")
)

// toolWorkspace is the directory that the tools share. It resolves the paths that a model
// names and opens files; no path leads out of it.
type toolWorkspace struct {
	root     *os.Root
	dir      string   // absolute, symbolic links resolved
	excluded []string // relative paths, with slashes, that the tools do not see
	// hidden and guarded are those of Config; nil: none.
	hidden, guarded func(name string) bool
	within          func(tool, name string) bool // Config.Within
}

// isExcluded reports whether a path is hidden from the tools.
func (w *toolWorkspace) isExcluded(name string) bool {
	return w.hidden != nil && w.hidden(name) || slices.ContainsFunc(w.excluded, func(left string) bool { return name == left || strings.HasPrefix(name, left+"/") })
}

// reachesExcluded is isExcluded for a path that may lead there by links, or by another spelling that the file system
// accepts.
func (w *toolWorkspace) reachesExcluded(name string) bool {
	if len(w.excluded) == 0 && w.hidden == nil && w.guarded == nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(filepath.Join(w.dir, filepath.FromSlash(name))); err == nil {
		rel, err := filepath.Rel(w.dir, real)
		if rel = filepath.ToSlash(rel); err == nil && (w.isExcluded(rel) || rel != name && w.guarded != nil && w.guarded(rel)) {
			return true
		}
	}
	for at := name; at != "."; at = path.Dir(at) {
		info, err := w.root.Stat(filepath.FromSlash(at))
		for _, left := range w.excluded {
			if hidden, bad := w.root.Stat(filepath.FromSlash(left)); err == nil && bad == nil && os.SameFile(info, hidden) {
				return true
			}
		}
	}
	return false
}

// leavesPart reports whether links lead from a path to one that the tool may not use.
func (w *toolWorkspace) leavesPart(tool, name string) bool {
	if w.within == nil {
		return false
	}
	real, err := filepath.EvalSymlinks(filepath.Join(w.dir, filepath.FromSlash(name)))
	if err != nil {
		return false // nothing is there
	}
	rel, err := filepath.Rel(w.dir, real)
	rel = filepath.ToSlash(rel)
	return err != nil || rel != name && !w.within(tool, rel)
}

// PathBelow makes a path that a model wrote relative to the directory of its tools, with slashes; "." of an empty one. It
// does not look at the disk. Errors: ErrOutside, fs.ErrInvalid.
func PathBelow(dir, name string) (string, error) {
	name = filepath.FromSlash(strings.TrimSpace(name))
	if name == "" {
		return ".", nil
	}
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%q: %w", name, fs.ErrInvalid)
	}
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, ErrOutside)
		}
		name = rel
	}
	name = filepath.Clean(name)
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s: %w", filepath.ToSlash(name), ErrOutside)
	}
	return filepath.ToSlash(name), nil
}

// resolvePath makes a path that a model wrote for a tool relative to the workspace.
func (w *toolWorkspace) resolvePath(tool, name string) (string, error) {
	name, err := PathBelow(w.dir, name)
	if err != nil || name == "." { // the directory itself, however it is spelled, is neither excluded nor behind a link
		return name, err
	}
	if w.isExcluded(name) || w.reachesExcluded(name) {
		return "", fmt.Errorf("%s: %w", printableName(name), fs.ErrNotExist)
	}
	if w.leavesPart(tool, name) {
		return "", fmt.Errorf("%s: %w", printableName(name), errElsewhereLinked)
	}
	return name, nil
}

// openFile opens a regular file for reading. It never blocks, because a named pipe may have no writer.
func (w *toolWorkspace) openFile(name string) (*os.File, fs.FileInfo, error) {
	return openRegular(w.root, filepath.FromSlash(name), name)
}

// openRegular opens a file of a directory; name is its path for errors.
func openRegular(dir *os.Root, base, name string) (*os.File, fs.FileInfo, error) {
	f, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, pathError(name, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = ErrDirectory
	} else if err == nil && !info.Mode().IsRegular() {
		err = ErrSpecial
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, pathError(name, err)
	}
	return f, info, nil
}

// pathError describes the problem with a path, without the names of system calls and without the location of the
// workspace on this machine.
func pathError(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		err = le.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", printableName(name), fs.ErrNotExist)
	case safefile.LeavesRoot(err):
		return fmt.Errorf("%s: %w", printableName(name), ErrOutside)
	}
	return fmt.Errorf("%s: %w", printableName(name), err)
}

// printableName returns a name as a line of a result shows it: valid UTF-8 without control characters.
func printableName(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0 {
		return name
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
}

// dotenvBytesMax is how much of a .env file readSecrets reads.
const dotenvBytesMax = 64 << 10

// readSecrets returns the values in the .env files at the top of the workspace.
func (w *toolWorkspace) readSecrets() []string {
	names, err := fs.Glob(w.root.FS(), ".env*")
	if err != nil {
		return nil
	}
	var values []string
	for _, name := range names {
		f, _, err := w.openFile(name)
		if err != nil {
			continue // a tool cannot read it either
		}
		data, err := io.ReadAll(io.LimitReader(f, dotenvBytesMax))
		_ = f.Close()
		if err == nil {
			values = append(values, redact.EnvValues(string(data))...)
		}
	}
	return values
}

// isReport reports whether a file at the top of the workspace is a report that troupe wrote.
func (w *toolWorkspace) isReport(name string) bool {
	if ext := path.Ext(name); strings.Contains(name, "/") || ext != ".md" && ext != ".json" {
		return false
	}
	f, _, err := w.openFile(name)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head, err := io.ReadAll(io.LimitReader(f, markBytes))
	return err == nil && isGenerated(head)
}

// fileSize returns the size of a regular file; ok is false for anything else.
func (w *toolWorkspace) fileSize(name string) (size int64, ok bool) {
	return regularSize(w.root, filepath.FromSlash(name))
}

func regularSize(dir *os.Root, base string) (size int64, ok bool) {
	info, err := dir.Lstat(base)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// statPath tells a path that does not exist from one in which nothing was found.
func (w *toolWorkspace) statPath(name string) (fs.FileInfo, error) {
	info, err := w.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, pathError(name, err)
	}
	return info, nil
}

// readEntries lists a directory, sorted by name, without excluded entries.
func (w *toolWorkspace) readEntries(dir string) ([]fs.DirEntry, error) {
	f, err := w.root.OpenFile(filepath.FromSlash(dir), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, pathError(dir, err)
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, pathError(dir, err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return w.isExcluded(path.Join(dir, e.Name())) })
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}
