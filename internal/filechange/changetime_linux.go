package filechange

import (
	"io/fs"
	"syscall"
)

// changeTime is when the inode of a file changed last, in nanoseconds.
func changeTime(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
