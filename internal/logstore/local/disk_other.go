//go:build !linux

package local

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

func allocateBlocks(f *os.File, size int64) error { return f.Truncate(size) }

func syncData(f *os.File) error { return f.Sync() }

func (osDisk) syncDir(dir string) error {
	if runtime.GOOS == "windows" { // a directory cannot be synced there, and NTFS logs its changes
		return nil
	}
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
