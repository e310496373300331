package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openPlain walks from the top and follows no link on the way. openat2 does so in one call, and is missing before
// Linux 5.6 and in some containers.
func openPlain(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s: the path of a directory must be absolute", path)
	}
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open("/", flags, 0)
	for part := range strings.SplitSeq(filepath.Clean(path), "/") {
		if err != nil {
			break
		}
		if part == "" {
			continue
		}
		above := fd
		fd, err = unix.Openat(above, part, flags, 0)
		_ = unix.Close(above)
	}
	switch {
	case errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s: %w", path, ErrReplaced)
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
