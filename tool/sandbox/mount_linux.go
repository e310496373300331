package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// mounts makes all that is mounted read-only but the directory and the temporary
// one, which also takes the place of /tmp, and /proc that of this namespace. Old
// kernels cannot; Landlock is the line that counts.
func (s *shutter) mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	writable := []string{s.task.Temp, s.task.Dir}
	if s.task.ReadOnly {
		writable = writable[:1]
	}
	places := slices.Clone(writable)
	if !under(s.task.Dir, "/tmp") && !slices.ContainsFunc(append(s.task.Read, s.task.Dir), func(path string) bool { return under("/tmp", path) }) {
		places[0], s.home = "/tmp", "/tmp"
	}
	trees := make([]int, len(places))
	for i, from := range writable {
		tree, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return s.without(err)
		}
		defer func() { _ = unix.Close(tree) }()
		trees[i] = tree
	}
	err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
	if err != nil {
		return s.without(err)
	}
	s.readOnly = true
	for i, to := range places {
		if err := unix.MoveMount(trees[i], "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mounts: %s: %w", to, err)
		}
	}
	if err := os.Chdir(s.task.Dir); err != nil { // or it would still be the one below
		return fmt.Errorf("mounts: %w", err)
	}
	return s.proc()
}

// without goes on where the kernel is too old for these calls (before 5.12).
func (s *shutter) without(err error) error {
	if !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("mounts: %w", err)
	}
	s.home = s.task.Temp
	return s.proc()
}

// proc shows this namespace's processes, or none where that is not allowed.
func (s *shutter) proc() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if unix.Mount("proc", "/proc", "proc", flags, "") == nil {
		return nil
	}
	if err := unix.Mount("tmpfs", "/proc", "tmpfs", flags|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mounts: /proc: %w", err)
	}
	return nil
}

// inside sets what a namespace has of its own: how many processes, no further
// namespaces, a loopback that is up. What is not its own is left alone, or it
// would be set for the whole machine.
func (s *shutter) inside() {
	if s.task.User {
		for _, name := range []string{"user", "mnt", "net", "pid"} { // else it could make its own, shut in as it is
			_ = os.WriteFile("/proc/sys/user/max_"+name+"_namespaces", []byte("0"), 0)
		}
	}
	if kernelAtLeast(pidMaxVersion) {
		n := max(s.task.Processes, pidMaxLeast)
		if os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.Itoa(n)), 0) == nil {
			s.found(Processes, true, "at most %d at once in the namespace", n)
		}
	}
	_ = loopback() // programs that talk to themselves go without it
}

// pidMaxLeast is the least that a kernel takes.
const pidMaxLeast = 400

// pidMaxVersion is the first kernel whose process namespaces have a limit of
// their own.
var pidMaxVersion = [2]int{6, 14}

func kernelAtLeast(least [2]int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	if n, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil || n != 2 {
		return false
	}
	return major > least[0] || major == least[0] && minor >= least[1]
}

// loopback brings lo up.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// under reports whether a path is a directory or below it.
func under(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
