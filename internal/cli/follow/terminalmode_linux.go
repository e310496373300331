package follow

import "golang.org/x/sys/unix"

// Requests about the mode of a terminal; setAndDrop drops what was typed and is not read yet.
const (
	getMode    = unix.TCGETS
	setMode    = unix.TCSETS
	setAndDrop = unix.TCSETSF
)
