//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// inputFile is a file that contains all of data before a program starts: a program that reads once, without
// waiting, finds its arguments. It is a pipe, or an unnamed file if the data does not fit a pipe.
func inputFile(data []byte) (*os.File, error) {
	if len(data) == 0 {
		return os.Open(os.DevNull)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	conn, err := w.SyscallConn()
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	n := 0
	var failed error
	err = conn.Write(func(fd uintptr) bool { // the descriptor does not block
		for n < len(data) && failed == nil {
			var wrote int
			wrote, failed = syscall.Write(int(fd), data[n:])
			n += max(wrote, 0)
			if errors.Is(failed, syscall.EINTR) {
				failed = nil
			}
		}
		return true
	})
	if n == len(data) {
		return r, nil
	}
	_ = r.Close()
	if err == nil && failed != nil && !errors.Is(failed, syscall.EAGAIN) {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return unnamedFile(data)
}

// unnamedFile returns a file with data that has no name any more.
func unnamedFile(data []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "troupe-stdin-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%d bytes: %w", len(data), err)
	}
	return f, nil
}
