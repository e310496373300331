package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// hiddenName is the empty directory that stands in for those of Spec.Hide.
const hiddenName = ".hidden"

// hidePaths puts an empty read-only directory over each of Spec.Hide, and pins the directories above it: a mount cannot
// be renamed. Where there are mounts and one fails, the command does not begin.
func (s *confinement) hidePaths() error {
	if len(s.task.Hide) == 0 {
		return nil
	}
	if !s.readOnly {
		s.noteFinding(Trust, false, "directories that the node trusts can be read and written: no mounts or no namespaces")
		return nil
	}
	empty := filepath.Join(s.home, hiddenName)
	if err := os.Mkdir(empty, 0o500); err != nil {
		return fmt.Errorf("hide: %w", err)
	}
	for _, path := range s.task.Hide {
		for _, above := range parentDirs(path) {
			if err := (gitMount{above, false}).mountOver(s.dir); err != nil {
				return fmt.Errorf("hide: %s: %w", above, err)
			}
		}
		if err := coverPath(s.dir, path, empty); err != nil {
			return fmt.Errorf("hide: %s: %w", path, err)
		}
	}
	s.noteFinding(Trust, true, "directories that the node trusts do not exist")
	return nil
}

// coverPath mounts an empty directory over a path. No link is followed on the way there.
func coverPath(dir int, path, empty string) error {
	at, err := openBeneath(dir, path)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	tree, err := unix.OpenTree(unix.AT_FDCWD, empty, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
