package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A search reads files at any depth, and holds few directories open for them: the node has one table of descriptors.
func TestASearchHoldsFewDirectoriesOpen(t *testing.T) {
	dir := t.TempDir()
	const depth = 3 * heldDirsMax
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", depth)), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	dirs := &dirStack{ws: &toolWorkspace{root: root, dir: dir}}
	defer dirs.closeDirs()
	for _, parents := range []int{depth, heldDirsMax + 1, depth, heldDirsMax, 1, 0} {
		name := strings.Repeat("d/", parents) + "file"
		if err := root.WriteFile(name, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		if size, ok := dirs.fileSize(name); !ok || size != int64(len("text")) {
			t.Errorf("below %d directories: %d bytes, %v", parents, size, ok)
		}
		f, err := dirs.openFile(name)
		if err != nil {
			t.Errorf("below %d directories: %v", parents, err)
			continue
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if len(dirs.dirs) > heldDirsMax {
			t.Errorf("below %d directories: %d are held open", parents, len(dirs.dirs))
		}
	}
}
