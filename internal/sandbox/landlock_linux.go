package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Versions of Landlock that brought what we ask.
const (
	landlockRefer    = 2
	landlockTruncate = 3
	landlockNet      = 4
	landlockIoctl    = 5
	landlockScope    = 6
)

// Rights of Landlock. What an older kernel does not know is not asked of it.
const (
	landlockRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockAll  = landlockRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	landlockFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// systemPlaces are the paths that programs need: the system's own files, no files of a
// person, and only those files of /etc that hold no secrets.
var systemPlaces = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu", "/run/current-system", "/proc", "/sys/devices/system",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/debian_version", "/etc/gitconfig", "/etc/group", "/etc/host.conf", "/etc/hostname", "/etc/hosts", "/etc/inputrc",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf",
	"/etc/os-release", "/etc/passwd", "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/protocols", "/etc/python3", "/etc/resolv.conf",
	"/etc/services", "/etc/shells", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/static", "/etc/terminfo", "/etc/timezone", "/etc/xdg"}

// devices are those that every program may use. The terminal is not among them.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// landlockABI returns the kernel's version of Landlock, 0 if it has none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// restrictFiles restricts this thread, and the command that it will start. It does not use
// a library: a library restricts all threads, and the others must stay able to kill
// the processes that the command has started.
func (s *confinement) restrictFiles(abi int) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockAll}
	for least, right := range map[int]uint64{landlockRefer: unix.LANDLOCK_ACCESS_FS_REFER, landlockTruncate: unix.LANDLOCK_ACCESS_FS_TRUNCATE,
		landlockIoctl: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV} {
		if abi >= least {
			attr.Handled_access_fs |= right
		}
	}
	if abi >= landlockNet && !s.task.Spaces { // a network namespace needs no further rules
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= landlockScope {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	defer func() { _ = unix.Close(int(set)) }()
	dir := attr.Handled_access_fs
	if s.task.ReadOnly {
		dir = landlockRead
	}
	if err := permitOpened(int(set), s.dir, dir); err != nil {
		return fmt.Errorf("landlock: %s: %w", s.task.Dir.Path, err)
	}
	for i, fd := range s.exact {
		if err := permitOpened(int(set), fd, landlockRead); err != nil {
			return fmt.Errorf("landlock: %s: %w", s.task.Exact[i].Path, err)
		}
	}
	rules := []struct {
		paths  []string
		rights uint64
	}{
		{[]string{s.home}, attr.Handled_access_fs},
		{systemPlaces, landlockRead}, {s.task.Read, landlockRead}, {filepath.SplitList(os.Getenv("PATH")), landlockRead},
		{devices, unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | attr.Handled_access_fs&unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	}
	for _, r := range rules {
		for _, p := range r.paths {
			if err := permitPath(int(set), p, r.rights); err != nil {
				return fmt.Errorf("landlock: %s: %w", p, err)
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

// permitPath adds a rule. A missing path needs none.
func permitPath(set int, path string, rights uint64) error {
	if !filepath.IsAbs(path) { // from PATH: a relative path would mean whatever a directory holds
		return nil
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
			return nil
		}
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return permitOpened(set, fd, rights)
}

func permitOpened(set, fd int, rights uint64) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= landlockFile
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
