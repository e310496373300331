//go:build unix

package workdir

import (
	"os"
	"syscall"
)

// Removed reports whether an open directory, as it is now, was removed: it is in no other one. A file system that
// does not count says no, and then a directory that was made anew is refused.
func Removed(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
