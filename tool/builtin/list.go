package builtin

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/troupe-run/troupe/tool"
)

// listEntriesMax is the most entries that list_dir shows.
const listEntriesMax = 300

type listArgs struct {
	Path string `json:"path,omitempty" jsonschema:"directory, default ."`
}

// listDir makes list_dir. One entry a line, sorted by name:
//
//	name/            a directory
//	name<TAB>size    a file
//	name@            a symbolic link
//	[N more entries] the last line, when there are more than 300
func (p *place) listDir() (tool.Tool, error) {
	return reader("list_dir", "List a directory: name/ is a directory, name<TAB>bytes a file, name@ a link.",
		func(ctx context.Context, in listArgs) (string, error) {
			dir, err := p.local(in.Path)
			if err != nil {
				return "", err
			}
			entries, err := p.entries(dir)
			if err != nil {
				return "", err
			}
			var b strings.Builder
			for i, e := range entries {
				if err := ctx.Err(); err != nil {
					return "", err
				}
				if i == listEntriesMax {
					fmt.Fprintf(&b, "[%d more entries]\n", len(entries)-i)
					break
				}
				b.WriteString(p.entryLine(dir, e) + "\n")
			}
			return b.String(), nil
		})
}

// entries are those of a directory, sorted by name, but what is left out.
func (p *place) entries(dir string) ([]fs.DirEntry, error) {
	f, err := p.root.OpenFile(filepath.FromSlash(dir), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plainly(dir, err)
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, plainly(dir, err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return len(p.left) > 0 && p.without(path.Join(dir, e.Name())) })
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (p *place) entryLine(dir string, e fs.DirEntry) string {
	name := shown(e.Name())
	switch {
	case e.IsDir():
		return name + "/"
	case e.Type()&fs.ModeSymlink != 0:
		return name + "@"
	}
	size := int64(0)
	if info, err := p.root.Lstat(filepath.Join(filepath.FromSlash(dir), e.Name())); err == nil {
		size = info.Size()
	}
	return fmt.Sprintf("%s\t%d", name, size)
}
