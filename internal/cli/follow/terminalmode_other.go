//go:build !linux && !darwin

package follow

import (
	"errors"
	"os"
)

// terminalMode does nothing here: questions are answered by whole lines.
type terminalMode struct{}

func newTerminalMode(*os.File, func(bool)) *terminalMode { return &terminalMode{} }

func (*terminalMode) acquireLines() error { return errors.ErrUnsupported }

func (*terminalMode) acquireKeys() error { return errors.ErrUnsupported }

func (*terminalMode) readLine() {}

func (*terminalMode) restore() {}

// plainReader is a terminal whose Read cannot be canceled.
type plainReader struct{ *os.File }

func newKeyReader(f *os.File) (keyReader, error) { return plainReader{f}, nil }

func (plainReader) Cancel() bool { return false }

// Close leaves the terminal open: the command goes on reading it.
func (plainReader) Close() error { return nil }
