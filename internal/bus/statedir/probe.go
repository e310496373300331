package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The durability that the owner of a state directory declares in NodeFile.
const (
	DurabilitySync = "sync" // on the disk before they are acknowledged
	DurabilityLazy = "lazy" // on the disk after LazySync at most

	LazySync = 2 * time.Minute
)

func DurabilityName(lazy bool) string {
	if lazy {
		return DurabilityLazy
	}
	return DurabilitySync
}

// IsOwned reports whether a process owns a state directory now. It changes nothing; a process
// that starts at the same moment retries.
func IsOwned(dir string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("statedir: %w", err)
	}
	held, err := tryLock(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return held, fmt.Errorf("statedir: lock of %s: %w", dir, err)
	}
	return held, nil
}

// HoldsState reports whether a node has kept its state in a directory. A directory that cannot be read counts as state,
// so that opening it reports the reason.
func HoldsState(dir string) bool {
	for _, name := range []string{logStoreFileName, jetStreamDirName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// DiskFree is how many bytes this user may still write in a directory.
func DiskFree(dir string) (int64, error) {
	free, err := diskFree(dir)
	if err != nil {
		return 0, fmt.Errorf("statedir: free disk space of %s: %w", dir, err)
	}
	return free, nil
}

// NodeFilePath is where the owner of a state directory writes its NodeFile.
func NodeFilePath(dir string) string { return filepath.Join(dir, NodeFileName) }
