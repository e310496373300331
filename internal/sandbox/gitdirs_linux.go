package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits of the search for git directories before each command.
const (
	gitSearchMax = 500_000 // files and directories looked at
	gitMountsMax = 500     // mounts made
)

// errSearch means that the search did not cover the whole directory.
var errSearch = errors.New("too many files to look for all git directories")

// gitMount is one mount below the directory: a git directory or link that becomes read-only, or a directory
// above one, which is pinned: a mount cannot be renamed, so no other one takes the place of a submodule.
type gitMount struct {
	path     string // relative
	readOnly bool
}

// protectGit makes everything that belongs to git below the directory read-only: hooks and settings there run
// programs of a person who later uses git. It adds its result to the report.
func (s *confinement) protectGit() {
	switch {
	case s.task.WriteGit:
		s.noteFinding(Git, true, "opened by the operator: tools.shell.git")
		return
	case s.task.ReadOnly:
		s.noteFinding(Git, true, "nothing of the directory is written")
		return
	case !s.readOnly:
		s.noteFinding(Git, false, "git directories can be written: no mounts or no namespaces")
		return
	}
	mounts, err := findGit(".") // this process is in it: its name may lead elsewhere
	for _, m := range mounts {
		if failed := m.mountOver(s.dir); failed != nil && err == nil {
			err = fmt.Errorf("%s: %w", m.path, failed)
		}
	}
	if err != nil {
		s.noteFinding(Git, false, "a git directory can be written: %v", err)
		return
	}
	s.noteFinding(Git, true, "git directories are mounted read-only")
}

// findGit lists the mounts that protect the git directories below a directory, outer ones first.
func findGit(dir string) (list []gitMount, err error) {
	pinned := map[string]bool{".": true}
	seen := 0
	add := func(rel string) {
		for _, above := range parentDirs(rel) {
			if !pinned[above] {
				pinned[above] = true
				list = append(list, gitMount{above, false})
			}
		}
		list = append(list, gitMount{rel, true})
	}
	walked := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, bad := filepath.Rel(dir, path)
		seen++
		switch {
		case seen > gitSearchMax || len(list) > gitMountsMax:
			return errSearch
		case err != nil || bad != nil:
			return nil
		case rel == ".":
			if isGit(path) {
				return errors.New("the directory itself is one")
			}
			return nil
		case !strings.EqualFold(d.Name(), ".git") && (!d.IsDir() || !isGit(path)):
			return nil
		case d.IsDir():
			add(rel)
			return fs.SkipDir
		case d.Type().IsRegular():
			add(rel)
		case d.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a link", rel)
		}
		return nil
	})
	return list, walked
}

// isGit reports whether a directory is a git directory, of whatever name.
func isGit(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// mountOver puts a path over itself. No link is followed on the way there.
func (m gitMount) mountOver(dir int) error {
	at, err := openBeneath(dir, m.path)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	tree, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	if m.readOnly {
		if err := unix.MountSetattr(tree, "", unix.AT_RECURSIVE|unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return err
		}
	}
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// openBeneath opens a path below a directory without following a link.
func openBeneath(dir int, path string) (int, error) {
	return unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
}

// parentDirs are the directories above a relative path, outer ones first.
func parentDirs(rel string) (list []string) {
	for dir := filepath.Dir(rel); dir != "."; dir = filepath.Dir(dir) {
		list = append([]string{dir}, list...)
	}
	return list
}
