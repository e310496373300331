package workdir

import (
	"fmt"
	"os"
)

// Through is a path that leads to an open directory, whatever its name leads to: for a program that is started in it
// while it is open. Without /proc it is the name.
func Through(f *os.File) string {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if _, err := os.Stat(path); err != nil {
		return f.Name()
	}
	return path
}
