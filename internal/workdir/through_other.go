//go:build !linux

package workdir

import "os"

// Through returns the name by which a directory was opened: on this system no other path
// leads to it.
func Through(f *os.File) string { return f.Name() }
