package builtin

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/workdir"
)

// dirStack holds the directories on the way to the file that was opened last. A search opens thousands of files in the
// order of their paths: without the stack, each of them opens and closes all directories above it again, twice.
//
// It belongs to one search and one goroutine, so that later searches see directories as they are then.
type dirStack struct {
	ws   *toolWorkspace
	dirs []openedDir // each below the one before, heldDirsMax at most
}

// heldDirsMax bounds the directories that a search holds open: a repository may have paths of two thousand directories,
// and the descriptors are those of the whole node.
const heldDirsMax = 32

type openedDir struct {
	name string // with a slash at its end
	root *os.Root
}

// parentOf returns the directory of a file and the name of the file in it. If a directory on the way cannot be opened by
// its own name, as one behind a link, or lies too deep to be held, it returns the directory of the tools and the whole name.
func (d *dirStack) parentOf(name string) (dir *os.Root, base string) {
	for n := len(d.dirs); n > 0 && !strings.HasPrefix(name, d.dirs[n-1].name); n-- {
		_ = d.dirs[n-1].root.Close()
		d.dirs = d.dirs[:n-1]
	}
	dir, from := d.ws.root, 0
	if n := len(d.dirs); n > 0 {
		dir, from = d.dirs[n-1].root, len(d.dirs[n-1].name)
	}
	for {
		length := strings.IndexByte(name[from:], '/')
		if length < 0 {
			return dir, name[from:]
		}
		if len(d.dirs) == heldDirsMax {
			return d.ws.root, filepath.FromSlash(name)
		}
		below, err := workdir.OpenBelow(dir, name[from:from+length]) // which blocks on no pipe of that name
		if err != nil {
			return d.ws.root, filepath.FromSlash(name)
		}
		from += length + 1
		d.dirs = append(d.dirs, openedDir{name[:from], below})
		dir = below
	}
}

// closeDirs closes all directories.
func (d *dirStack) closeDirs() {
	for _, dir := range d.dirs {
		_ = dir.root.Close() // it was only read
	}
	d.dirs = nil
}

// fileSize is toolWorkspace.fileSize.
func (d *dirStack) fileSize(name string) (size int64, ok bool) { return regularSize(d.parentOf(name)) }

// openFile is toolWorkspace.openFile.
func (d *dirStack) openFile(name string) (*os.File, error) {
	dir, base := d.parentOf(name)
	f, _, err := openRegular(dir, base, name)
	return f, err
}
