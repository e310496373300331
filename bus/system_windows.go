package bus

import (
	"errors"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks f without waiting; held: somebody else has it.
func tryLock(f *os.File) (held bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return true, nil
	}
	return false, err
}

// unlock gives the lock back.
func unlock(f *os.File) error {
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

// openFilesMax is how many descriptors this process may have: there is no such limit.
func openFilesMax() uint64 { return math.MaxUint64 }

// private: who may read a file is inherited from its directory here, and there is
// no mode that says it.
func private(fs.FileInfo) error { return nil }

// ownedBySelf: see private.
func ownedBySelf(fs.FileInfo) error { return nil }

// opened: see private.
func opened(info fs.FileInfo) (mode fs.FileMode, open bool) { return info.Mode().Perm(), false }
