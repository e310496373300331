package agentmemory

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/safefile"
)

// Scopes of a store, as agent files name them.
const (
	User    = "user"    // all runs of an agent
	Project = "project" // the runs of an agent in one directory
)

// Store is the memory of one agent.
type Store struct {
	// Scope is User or Project, Dir the directory of a project.
	Scope, Agent, Dir string
	stateDir          string
}

// OpenStore names a store in a state directory. It creates nothing: the first write does.
func OpenStore(stateDir, scope, agent, dir string) (Store, error) {
	s := Store{Scope: scope, Agent: agent, Dir: dir, stateDir: stateDir}
	switch {
	case stateDir == "":
		return s, fmt.Errorf("%w: it has no state directory", ErrStore)
	case !spec.IsAgentName(agent):
		return s, fmt.Errorf("%w: %.80q is not a valid agent name (want [a-z0-9_-], 1 to 64 bytes)", ErrStore, agent)
	case scope == User:
		s.Dir = ""
	case scope != Project:
		return s, fmt.Errorf("%w: %.80q is neither %s nor %s", ErrStore, scope, User, Project)
	case !filepath.IsAbs(dir) || filepath.Clean(dir) != dir:
		return s, fmt.Errorf("%w: the project directory %.200q is not a clean absolute path", ErrStore, dir)
	}
	return s, nil
}

// Names within the state directory: memory/user/AGENT/NOTE.json, memory/projects/HASH/agents/AGENT/NOTE.json, and
// memory/projects/HASH/dir, which holds the path of the directory.
const (
	memoryDir   = "memory"
	userDir     = "user"
	projectsDir = "projects"
	agentsDir   = "agents"
	pathFile    = "dir"
	lockFile    = "lock"
	noteSuffix  = ".json"
	tempPrefix  = ".writing-"
)

// pathBytesMax bounds the path of a directory.
const pathBytesMax = 4 << 10

// hashBytes is how many bytes of a hash name the directory of a project.
const hashBytes = 8

func (s Store) parts() []string {
	if s.Scope == User {
		return []string{memoryDir, userDir, s.Agent}
	}
	sum := sha256.Sum256([]byte(s.Dir))
	return []string{memoryDir, projectsDir, hex.EncodeToString(sum[:hashBytes]), agentsDir, s.Agent}
}

// BrokenNote is a note that cannot be read.
type BrokenNote struct {
	Name string
	Err  error
}

// Notes returns the notes by name, and those that cannot be read.
func (s Store) Notes() (notes []Note, broken []BrokenNote, err error) {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	return readNotes(root)
}

// Read returns a note.
func (s Store) Read(name string) (Note, error) {
	if err := CheckName(name); err != nil {
		return Note{}, err
	}
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return Note{}, fmt.Errorf("%w: %s", ErrNoteNotFound, name)
	}
	if err != nil {
		return Note{}, err
	}
	defer func() { _ = root.Close() }()
	return readNote(root, name)
}

// Usage is how much of a store is in use.
type Usage struct{ Notes, Bytes int }

// Write saves a note. It replaces a note of that name, or with a version only that version of it. If the stored note
// has the same text, Write changes nothing.
func (s Store) Write(n Note, version string) (u Usage, err error) {
	if err := n.check(); err != nil {
		return u, err
	}
	free, err := s.lock(true)
	if err != nil {
		return u, err
	}
	defer free()
	root, err := s.openOrCreate()
	if err != nil {
		return u, err
	}
	defer func() { _ = root.Close() }()
	removeTemps(root)
	notes, broken, err := readNotes(root)
	if err != nil {
		return u, err
	}
	broken = slices.DeleteFunc(broken, func(b BrokenNote) bool { return b.Name == n.Name })
	u = Usage{Notes: 1 + len(broken), Bytes: n.size() + len(broken)*ContentBytesMax}
	var old Note
	for _, other := range notes {
		if other.Name == n.Name {
			old = other
			continue
		}
		u.Notes, u.Bytes = u.Notes+1, u.Bytes+other.size()
	}
	if old.Name != "" && old.Version() == n.Version() {
		return u, nil
	}
	switch {
	case version != "" && old.Name == "":
		return u, fmt.Errorf("%w: %s is not there, or cannot be read; leave version out to write a new one", ErrChanged, n.Name)
	case version != "" && old.Version() != version:
		return u, fmt.Errorf("%w: %s has the version %s; read it again, and write what both versions say", ErrChanged, n.Name, old.Version())
	case u.Notes > NotesMax:
		return u, fmt.Errorf("%w: it has %d notes; delete one, or join notes", ErrFull, NotesMax)
	case u.Bytes > StoreBytesMax:
		return u, fmt.Errorf("%w: with this note it has %d bytes, at most %d are kept; delete or shorten notes", ErrFull, u.Bytes, StoreBytesMax)
	}
	data, err := n.encode()
	if err != nil {
		return u, err
	}
	return u, replaceIn(root, n.Name+noteSuffix, data)
}

// Delete removes a note, also one that cannot be read, and reports whether it was there.
func (s Store) Delete(name string) (found bool, err error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	free, err := s.lock(false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer free()
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }()
	removeTemps(root)
	switch err := root.Remove(name + noteSuffix); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("agentmemory: %w", err)
	}
	return true, errors.Join(syncRoot(root), s.removeEmpty())
}

// lock serializes the writers of this machine; with create it makes the directory of the lock file.
func (s Store) lock(create bool) (unlock func(), err error) {
	root, err := openBelow(s.stateDir, []string{memoryDir}, create)
	if err != nil {
		return nil, err
	}
	_ = root.Close()
	if unlock, err = safefile.LockExclusive(filepath.Join(s.stateDir, memoryDir, lockFile)); err != nil {
		return nil, fmt.Errorf("agentmemory: %w", err)
	}
	return unlock, nil
}

// readNotes returns the notes of an open store.
func readNotes(root *os.Root) (notes []Note, broken []BrokenNote, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, fmt.Errorf("agentmemory: %w", err)
	}
	for _, e := range entries {
		name, isNote := strings.CutSuffix(e.Name(), noteSuffix)
		if !isNote || CheckName(name) != nil {
			continue
		}
		switch n, err := readNote(root, name); {
		case errors.Is(err, ErrNoteNotFound): // deleted meanwhile
		case err != nil:
			broken = append(broken, BrokenNote{name, err})
		default:
			notes = append(notes, n)
		}
	}
	slices.SortFunc(notes, func(a, b Note) int { return strings.Compare(a.Name, b.Name) })
	return notes, broken, nil
}

// readNote reads one note. It follows no link.
func readNote(root *os.Root, name string) (Note, error) {
	file := name + noteSuffix
	info, err := root.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Note{}, fmt.Errorf("%w: %s", ErrNoteNotFound, name)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = safefile.ErrSpecial
	}
	if err != nil {
		return Note{}, fmt.Errorf("agentmemory: %s: %w", file, err)
	}
	data, err := safefile.ReadIn(root, file, fileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return Note{}, fmt.Errorf("%w: %s", ErrNoteNotFound, name)
	}
	if err != nil {
		return Note{}, fmt.Errorf("agentmemory: %w", err)
	}
	return decodeNote(name, data)
}

// replaceIn writes a file as a whole: a crash leaves the old or the new one. The caller holds the lock.
func replaceIn(root *os.Root, name string, data []byte) error {
	temp := tempPrefix + rand.Text()
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return fmt.Errorf("agentmemory: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return fmt.Errorf("agentmemory: %w", errors.Join(err, root.Remove(temp)))
	}
	return syncRoot(root)
}

// removeTemps removes the temporary files of writers that were killed. The caller holds the lock.
func removeTemps(root *os.Root) {
	entries, _ := fs.ReadDir(root.FS(), ".") // what cannot be listed stays
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			_ = root.Remove(e.Name())
		}
	}
}
