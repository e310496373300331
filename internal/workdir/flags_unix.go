//go:build unix

package workdir

import (
	"os"
	"syscall"
)

// directoryOnly are flags that open a directory and never block.
const directoryOnly = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK
