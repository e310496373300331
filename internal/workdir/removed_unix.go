//go:build unix

package workdir

import (
	"os"
	"syscall"
)

// IsRemoved reports whether an open directory, in its current state, was removed: no directory contains it. On a
// file system that does not count links IsRemoved returns false, and a directory that was made anew is then
// refused.
func IsRemoved(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
