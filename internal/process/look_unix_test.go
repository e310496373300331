//go:build unix

package process

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// readWithoutBlocking reads stdin until a read would block, and prints the data.
func readWithoutBlocking() {
	if syscall.SetNonblock(0, true) != nil {
		os.Exit(1)
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := syscall.Read(0, buffer)
		if n <= 0 || err != nil {
			return
		}
		_, _ = os.Stdout.Write(buffer[:n])
	}
}

// openInheritable opens a descriptor that programs inherit.
func openInheritable(t *testing.T) int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "open")
	f, err := os.Create(file)
	if err == nil {
		_, err = io.WriteString(f, "x")
	}
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(f.Fd())) // without the mark that ends it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd); _ = f.Close() })
	return fd
}
