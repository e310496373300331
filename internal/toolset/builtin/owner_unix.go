//go:build unix

package builtin

import (
	"os"
	"syscall"
)

// sameOwner reports whether a repository above a directory belongs to the owner of the directory or to us, as
// git requires of a repository that it discovers.
func sameOwner(a, b os.FileInfo) bool {
	of, ok := a.Sys().(*syscall.Stat_t)
	with, also := b.Sys().(*syscall.Stat_t)
	return ok && also && (of.Uid == with.Uid || int(of.Uid) == os.Geteuid())
}
