package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/workdir"
)

// mountReadOnly makes every mount read-only except the directory and the temporary directory,
// which also replaces /tmp; /proc becomes that of this namespace. Old
// kernels cannot do this; Landlock is the line of defense that counts.
func (s *confinement) mountReadOnly() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	temp, err := unix.OpenTree(unix.AT_FDCWD, s.task.Temp, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return s.continueWithout(err)
	}
	defer func() { _ = unix.Close(temp) }()
	dir := s.dir
	if !s.task.ReadOnly {
		if dir, err = unix.OpenTree(s.dir, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH); err != nil {
			return s.continueWithout(err)
		}
	}
	err = unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
	if err != nil {
		return s.continueWithout(err)
	}
	s.readOnly = true
	if s.coversTmp() {
		s.home = "/tmp"
	}
	if err := unix.MoveMount(temp, "", unix.AT_FDCWD, s.home, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounts: %s: %w", s.home, err)
	}
	if s.task.ReadOnly {
		return s.mountProc()
	}
	if err := unix.MoveMount(dir, "", s.dir, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounts: %s: %w", s.task.Dir.Path, err)
	}
	_ = unix.Close(s.dir)
	s.dir = dir
	if err := unix.Fchdir(s.dir); err != nil { // or it would still be the one below
		return fmt.Errorf("mounts: %w", err)
	}
	return s.mountProc()
}

// coversTmp reports whether the temporary directory replaces /tmp: no path of the task is in /tmp.
func (s *confinement) coversTmp() bool {
	inTmp := func(path string) bool { return workdir.IsBelow("/tmp", path) }
	return !workdir.IsBelow(s.task.Dir.Path, "/tmp") && !inTmp(s.task.Dir.Path) && !slices.ContainsFunc(s.task.Read, inTmp) &&
		!slices.ContainsFunc(s.task.Exact, func(p exactPlace) bool { return inTmp(p.Path) })
}

// openPlace opens a place without following a link, and checks that it is still the same file or directory.
func (p exactPlace) openPlace() (int, error) {
	above, err := workdir.Open(filepath.Dir(p.Path))
	if err != nil {
		return -1, err
	}
	defer func() { _ = above.Close() }()
	fd, err := unix.Openat(int(above.Fd()), filepath.Base(p.Path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", p.Path, err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Dev != p.Dev || stat.Ino != p.Ino {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("%s: %w", p.Path, errors.Join(ErrReplaced, err))
	}
	return fd, nil
}

// continueWithout continues where the kernel is too old for these calls (before 5.12).
func (s *confinement) continueWithout(err error) error {
	if !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("mounts: %w", err)
	}
	s.home = s.task.Temp
	return s.mountProc()
}

// mountProc mounts a /proc of this namespace's processes, or an empty one where that is not allowed.
func (s *confinement) mountProc() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if unix.Mount("proc", "/proc", "proc", flags, "") == nil {
		return nil
	}
	if err := unix.Mount("tmpfs", "/proc", "tmpfs", flags|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mounts: /proc: %w", err)
	}
	return nil
}

// setUpNamespace configures what the namespace owns: the number of processes, no further
// namespaces, a loopback that is up. It changes nothing that the namespace does not own,
// because that would affect the whole machine.
func (s *confinement) setUpNamespace() {
	if s.task.User {
		// otherwise the command could create its own namespaces inside the sandbox
		for _, name := range []string{"user", "mnt", "net", "pid"} {
			_ = os.WriteFile("/proc/sys/user/max_"+name+"_namespaces", []byte("0"), 0)
		}
	}
	if kernelAtLeast(pidMaxVersion) {
		n := max(s.task.Processes, pidMaxLeast)
		if os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.Itoa(n)), 0) == nil {
			s.noteFinding(Processes, true, "at most %d at once in the namespace", n)
		}
	}
	_ = raiseLoopback() // programs that talk to themselves go without it
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

// raiseLoopback brings lo up.
func raiseLoopback() error {
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
