package builtin

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

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
func (t *fileTools) listDir() (tool.Tool, error) {
	return newReadTool("list_dir", "List a directory: name/ is a directory, name<TAB>bytes a file, name@ a link.",
		func(ctx context.Context, in listArgs) (string, error) {
			dir, err := t.ws.resolvePath("list_dir", in.Path)
			if err != nil {
				return "", err
			}
			entries, err := t.ws.readEntries(dir)
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
				b.WriteString(t.entryLine(dir, e) + "\n")
			}
			return b.String(), nil
		})
}

func (t *fileTools) entryLine(dir string, e fs.DirEntry) string {
	name := printableName(e.Name())
	switch {
	case e.IsDir():
		return name + "/"
	case e.Type()&fs.ModeSymlink != 0:
		return name + "@"
	}
	size := int64(0)
	if info, err := t.ws.root.Lstat(filepath.Join(filepath.FromSlash(dir), e.Name())); err == nil {
		size = info.Size()
	}
	return fmt.Sprintf("%s\t%d", name, size)
}
