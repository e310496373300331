//go:build !linux

package workdir

import "os"

// Through is the name that a directory was opened by: nothing else leads to it here.
func Through(f *os.File) string { return f.Name() }
