//go:build !linux

package workdir

import "os"

// DescriptorPath returns the name by which a directory was opened: on this system no other path
// leads to it.
func DescriptorPath(f *os.File) string { return f.Name() }
