package agentmemory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/safefile"
)

// Only the user of the state directory reads notes.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// ErrLink refuses a link where a directory of the memory should be: what a store holds is in the state directory.
var ErrLink = errors.New("agentmemory: a link is not followed")

// open opens the directory of a store.
func (s Store) open() (*os.Root, error) { return openBelow(s.stateDir, s.parts(), false) }

// openOrCreate opens the directory of a store, and makes it if it is missing. The caller holds the lock.
func (s Store) openOrCreate() (*os.Root, error) {
	if s.Scope == Project {
		if err := s.recordPath(); err != nil {
			return nil, err
		}
	}
	return openBelow(s.stateDir, s.parts(), true)
}

// recordPath writes down which directory the project is, for people.
func (s Store) recordPath() error {
	root, err := openBelow(s.stateDir, s.parts()[:3], true)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	switch known, err := readPath(root); {
	case errors.Is(err, fs.ErrNotExist):
		return replaceIn(root, pathFile, []byte(s.Dir+"\n"))
	case err != nil:
		return err
	case known != s.Dir:
		return fmt.Errorf("%w: it is that of the directory %.200q", ErrStore, known)
	}
	return nil
}

// readPath reads which directory a project is.
func readPath(root *os.Root) (string, error) {
	data, err := safefile.ReadIn(root, pathFile, pathBytesMax)
	if err != nil {
		return "", fmt.Errorf("agentmemory: %w", err)
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

// openBelow opens a directory below another one, part by part. It follows no link.
func openBelow(dir string, parts []string, create bool) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("agentmemory: %w", err)
	}
	for i, part := range parts {
		next, err := openPart(root, part, create)
		if errors.Is(err, ErrLink) {
			err = fmt.Errorf("%w: %s", err, filepath.Join(parts[:i+1]...))
		}
		_ = root.Close()
		if err != nil {
			return nil, err
		}
		root = next
	}
	return root, nil
}

func openPart(root *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := root.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("agentmemory: %w", err)
		}
	}
	seen, err := root.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("agentmemory: %w", err)
	}
	if !seen.IsDir() {
		return nil, ErrLink
	}
	next, err := root.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("agentmemory: %w", err)
	}
	if info, err := next.Stat("."); err != nil || !os.SameFile(seen, info) {
		return nil, errors.Join(ErrLink, err, next.Close())
	}
	return next, nil
}

// removeEmpty removes the directories of a store without notes. The caller holds the lock.
func (s Store) removeEmpty() error {
	parts := s.parts()
	for depth := len(parts) - 1; depth >= 2; depth-- {
		root, err := openBelow(s.stateDir, parts[:depth], false)
		if err != nil {
			return err
		}
		name := parts[depth]
		if depth == 2 && s.Scope == Project {
			_ = root.Remove(filepath.Join(name, pathFile)) // its agents directory is gone
		}
		err = root.Remove(name)
		_ = root.Close()
		if err != nil {
			return nil // other notes are left there
		}
	}
	return nil
}

// syncRoot makes a rename or removal durable. Systems that cannot sync a directory need not.
func syncRoot(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("agentmemory: %w", err)
	}
	err = d.Sync()
	_ = d.Close()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("agentmemory: %w", err)
	}
	return nil
}

// Stores returns all stores of a state directory, those of the user first, and an error for each that cannot be read.
func Stores(stateDir string) (stores []Store, problems []error) {
	list := func(scope, dir string, parts ...string) {
		for _, agent := range listDirs(stateDir, parts, &problems) {
			s, err := OpenStore(stateDir, scope, agent, dir)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			stores = append(stores, s)
		}
	}
	list(User, "", memoryDir, userDir)
	for _, hash := range listDirs(stateDir, []string{memoryDir, projectsDir}, &problems) {
		root, err := openBelow(stateDir, []string{memoryDir, projectsDir, hash}, false)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		dir, err := readPath(root)
		_ = root.Close()
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", filepath.Join(memoryDir, projectsDir, hash), err))
			continue
		}
		if s, err := OpenStore(stateDir, Project, "any", dir); err != nil || s.parts()[2] != hash {
			problems = append(problems, fmt.Errorf("%w: %s is not that of the directory %.200q which its file names", ErrStore, filepath.Join(memoryDir, projectsDir, hash), dir))
			continue
		}
		list(Project, dir, memoryDir, projectsDir, hash, agentsDir)
	}
	return stores, problems
}

// listDirs returns the entries of a directory of the memory; a missing one has none.
func listDirs(stateDir string, parts []string, problems *[]error) (names []string) {
	root, err := openBelow(stateDir, parts, false)
	if err == nil {
		defer func() { _ = root.Close() }()
		var entries []fs.DirEntry
		entries, err = fs.ReadDir(root.FS(), ".")
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		*problems = append(*problems, err)
	}
	return names
}
