//go:build unix

package workdir

import (
	"os"
	"syscall"
)

// directoryOnly opens a directory and waits for nothing.
const directoryOnly = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK
