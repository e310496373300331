package follow

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped drops what was typed at a terminal and is not read yet. Other input stays: it is no terminal.
func dropTyped(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
