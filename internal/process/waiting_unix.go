//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// copyWaiting copies what a pipe contains now, at most max bytes, and waits for nothing. The
// deadline of the file has no part in it: a goroutine that gets its turn late loses no output.
func copyWaiting(to io.Writer, pipe *os.File, max int) {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		for buf := make([]byte, 32<<10); max > 0; {
			n, err := syscall.Read(int(fd), buf) // os.Pipe makes pipes that do not block
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || n <= 0 {
				return
			}
			_, _ = to.Write(buf[:n])
			max -= n
		}
	})
}
