//go:build !linux

package workdir

import (
	"fmt"
	"os"
	"path/filepath"
)

// openPlain checks before and compares afterwards: it does not detect a directory above that is swapped twice
// in between.
func openPlain(path string) (*os.File, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(path); err != nil || real != filepath.Clean(path) || !before.IsDir() {
		return nil, fmt.Errorf("%s: %w", path, ErrReplaced)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(before, now) {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, ErrReplaced)
	}
	return f, nil
}
