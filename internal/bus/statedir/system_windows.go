package statedir

import (
	"errors"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks f without waiting; held says that another process has the lock.
func tryLock(f *os.File) (held bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return true, nil
	}
	return false, err
}

// unlockFile releases the lock.
func unlockFile(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
}

// diskFree is how many bytes an ordinary user may still write under dir.
func diskFree(dir string) (int64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(free), nil
}

// OpenFilesMax is how many descriptors this process may have: Windows has no such limit.
func OpenFilesMax() uint64 { return math.MaxUint64 }

// checkPrivateFile accepts every file: on Windows a file inherits its readers from its directory, and
// no mode expresses them.
func checkPrivateFile(fs.FileInfo) error { return nil }

// ownedBySelf accepts every file: see checkPrivateFile.
func ownedBySelf(fs.FileInfo) error { return nil }

// accessByOthers reports no access of others: see checkPrivateFile.
func accessByOthers(info fs.FileInfo) (mode fs.FileMode, open bool) { return info.Mode().Perm(), false }
