// Package filechange records what tools change in the directory of a run, by the hashes of contents, shows
// it, and takes it back (docs/undo.md). The directory, the commands that run in it and the logs of the run
// are hostile: no path leads out of the directory or through a link, and everything is bounded.
package filechange

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/workdir"
)

// Limits.
const (
	// SnapshotFilesMax is how many files and directories are looked at before a command: in a larger directory its
	// changes are not recorded.
	SnapshotFilesMax = 20_000
	// KeptFileBytesMax is the largest file whose earlier content is kept when a command changes it, KeptBytesMax the
	// most of all files together. For other files only the change is recorded.
	KeptFileBytesMax = 1 << 20
	KeptBytesMax     = 16 << 20
	// ChangesMax is how many changes of one call are recorded, StoredBytesMax the most of their contents.
	ChangesMax     = 100
	StoredBytesMax = 16 << 20
	// PathBytesMax is the longest path that is recorded.
	PathBytesMax = 512
	// HashedBytesMax is the largest file that is hashed.
	HashedBytesMax = 64 << 20
)

// regular marks the mode of a file that exists.
const regular = 1 << 15

// State is a file at one moment, with its content if it was kept.
type State struct {
	Mode   fs.FileMode
	Exists bool
	SHA256 string // "": not known
	Size   int64
	Data   []byte
	Kept   bool // Data is the content
}

// Content is the state of a file with this content.
func Content(data []byte, mode fs.FileMode) State {
	return State{Mode: mode.Perm(), Exists: true, SHA256: hash(data), Size: int64(len(data)), Data: data, Kept: true}
}

// Record returns the state as a log has it, without a blob.
func (s State) Record() spec.FileState {
	if !s.Exists {
		return spec.FileState{}
	}
	return spec.FileState{Mode: uint32(s.Mode.Perm()) | regular, SHA256: s.SHA256, Size: s.Size}
}

// sameContent reports whether two states are known to be the same file content, or both no file.
func sameContent(s, t spec.FileState) bool {
	return s.Exists() == t.Exists() && s.SHA256 == t.SHA256 && (!s.Exists() || s.SHA256 != "")
}

// Change is what happened to one file.
type Change struct {
	Path          string // relative, with slashes
	Before, After State
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var (
	// errNotRegular says that something else than a file is at the path of one.
	errNotRegular = errors.New("it is not a regular file")
	// ErrLink says that a link is on the way to a file.
	ErrLink = errors.New("a link, or no directory, is on the way to it")
)

// checkPath rejects a path that no tool could have changed.
func checkPath(name string) error {
	switch {
	case name == "" || len(name) > PathBytesMax || name != path.Clean(name) || !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, "\x00") || os.PathSeparator != '/' && strings.Contains(name, `\`):
		return errors.New("it is not a path within the directory")
	case name == ".":
		return errors.New("it is the directory itself")
	}
	for part := range strings.SplitSeq(name, "/") {
		if IsGitName(part) {
			return errors.New("it belongs to git")
		}
	}
	return nil
}

// openParent opens the directory of a file without following links, and makes missing ones if create is set. The
// caller closes it.
func openParent(root *os.Root, name string, create bool) (*os.Root, string, error) {
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, "", err
	}
	parts := strings.Split(name, "/")
	for _, part := range parts[:len(parts)-1] {
		below, err := openDirectory(at, part, create)
		_ = at.Close()
		if err != nil {
			return nil, "", err
		}
		at = below
	}
	return at, parts[len(parts)-1], nil
}

func openDirectory(at *os.Root, name string, create bool) (*os.Root, error) {
	info, err := at.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = at.Mkdir(name, 0o755); err == nil {
			info, err = at.Lstat(name)
		}
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, ErrLink
	}
	below, err := workdir.OpenBelow(at, name)
	if err != nil {
		return nil, err
	}
	if !workdir.IsSame(below, info) {
		_ = below.Close()
		return nil, ErrLink
	}
	return below, nil
}

// readFile returns the state of a file of an opened directory; one that is not there has the zero State.
func readFile(at *os.Root, name string, keep int64) (State, error) {
	seen, err := at.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	return readSeen(at, name, seen, keep)
}

// readSeen returns the state of a file that was seen in an opened directory, with the content if it is small
// enough. It follows no link and never blocks.
func readSeen(at *os.Root, name string, seen fs.FileInfo, keep int64) (State, error) {
	if !seen.Mode().IsRegular() {
		return State{}, errNotRegular
	}
	f, err := at.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return State{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return State{}, err
	}
	if !os.SameFile(seen, info) {
		return State{}, errNotRegular
	}
	s := State{Mode: info.Mode().Perm(), Exists: true, Size: info.Size()}
	if s.Size <= keep {
		if s.Data, err = readAll(f, s.Size, keep); err == nil && int64(len(s.Data)) <= keep {
			s.Size, s.SHA256, s.Kept = int64(len(s.Data)), hash(s.Data), true
			return s, nil
		}
		return State{Mode: s.Mode, Exists: true, Size: s.Size}, err
	}
	if s.Size > HashedBytesMax {
		return s, nil
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, HashedBytesMax+1))
	if err == nil && n <= HashedBytesMax {
		s.SHA256, s.Size = hex.EncodeToString(sum.Sum(nil)), n
	}
	return s, err
}

// IsGitName reports whether a file system may accept a name for .git: without regard to case, and on Windows
// without a suffix after a colon, dots and spaces at the end, or by its short name.
func IsGitName(name string) bool {
	name, _, _ = strings.Cut(unseenRunes.Replace(name), ":")
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, gitDir) || len(name) > 4 && strings.EqualFold(name[:4], "git~")
}

// unseenRunes are the characters that HFS+ ignores in names.
var unseenRunes = strings.NewReplacer("\u200c", "", "\u200d", "", "\u200e", "", "\u200f", "", "\u202a", "", "\u202b", "", "\u202c", "", "\u202d", "", "\u202e", "", "\u206a", "",
	"\u206b", "", "\u206c", "", "\u206d", "", "\u206e", "", "\u206f", "", "\ufeff", "")

const nonBlocking = syscall.O_NONBLOCK // a pipe in the place of a file has no writer

// gitDir is the directory from which a user's own git takes commands.
const gitDir = ".git"

// readAll reads a file of some size, and one byte more than keep if it has grown.
func readAll(f *os.File, size, keep int64) ([]byte, error) {
	data := make([]byte, 0, min(size, keep)+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil || int64(len(data)) > keep {
			return data, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, 512)
		}
	}
}
