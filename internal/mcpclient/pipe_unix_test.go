//go:build unix

package mcpclient

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// To open a pipe that nobody writes is to wait for ever.
func TestAPipeInThePlaceOfAFileIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}
