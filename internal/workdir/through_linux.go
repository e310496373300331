package workdir

import (
	"fmt"
	"os"
)

// DescriptorPath returns a path that leads to an open directory, wherever its name leads: for a program that is
// started in it while it is open. Without /proc it returns the name.
func DescriptorPath(f *os.File) string {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if _, err := os.Stat(path); err != nil {
		return f.Name()
	}
	return path
}
