package follow

import (
	"errors"
	"io"
)

// typedInput is what was typed at once: one or more keys, or a line.
type typedInput struct {
	text       string
	err        error
	resumed    bool // nothing was typed: the process was stopped and continues
	background bool // the process continues in the background
}

// keyReader reads a terminal; Cancel ends a Read that waits.
type keyReader interface {
	io.ReadCloser
	Cancel() bool
}

// Why a question waits: another program reads the keys of the terminal, or the process would be stopped if it read it.
var (
	errTaken      = errors.New("another program reads the keys of this terminal")
	errBackground = errors.New("troupe is in the background: fg, or troupe answer")
)
