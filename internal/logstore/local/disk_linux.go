package local

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// allocateBlocks reserves the blocks of a file, so that a later sync has no sizes and block lists
// to store, and so that a full disk shows here and not in the middle of a batch.
func allocateBlocks(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(size) // the file system has no such call
	}
	if err != nil {
		return &os.PathError{Op: "allocate", Path: f.Name(), Err: err}
	}
	return nil
}

func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return &os.PathError{Op: "sync", Path: f.Name(), Err: err}
		default:
			return nil
		}
	}
}

func (osDisk) syncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
