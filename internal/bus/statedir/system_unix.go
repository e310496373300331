//go:build unix

package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock locks f without waiting; held says that another process has the lock.
func tryLock(f *os.File) (held bool, err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return true, nil
		}
		return false, err
	}
}

// unlockFile releases the lock. Closing alone would not release it while a child that was forked
// just now still has the descriptor.
func unlockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// diskFree is how many bytes an ordinary user may still write under dir.
func diskFree(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // their types differ between systems
}

// OpenFilesMax is how many descriptors this process may have.
func OpenFilesMax() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return math.MaxUint64 // unknown: the defaults
	}
	return uint64(l.Cur) //nolint:unconvert // its type differs between systems
}

// ownedBySelf checks that a file or directory belongs to this user.
func ownedBySelf(info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("is of another user (%d)", s.Uid)
	}
	return nil
}

// checkPrivateFile checks that a file belongs to this user, and that no other user may read or write
// it.
func checkPrivateFile(info fs.FileInfo) error {
	if err := ownedBySelf(info); err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&^0o600 != 0 {
		return fmt.Errorf("has the mode %#o and is accessible to other users", mode)
	}
	return nil
}

// accessByOthers reports whether others may enter a directory.
func accessByOthers(info fs.FileInfo) (mode fs.FileMode, open bool) {
	mode = info.Mode().Perm()
	return mode, mode&0o077 != 0
}
