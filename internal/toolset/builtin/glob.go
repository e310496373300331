package builtin

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/tool"
)

// Limits of glob.
const (
	globPathsMax      = 100
	globExtensionsMax = 12
	globLargestMax    = 5
)

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"such as **/*.go or src/*.{ts,js}"`
}

// sizedFile is a path and the size of its file.
type sizedFile struct {
	path string
	size int64
}

// globTool makes glob: at most 100 paths, sorted, one a line, then
//
//	[N files, B bytes]
//	[extensions: .go 120 345678; .md 10 1234]   extension, files, bytes; 12 at most, by bytes
//	[largest: path size; path size]             5 at most
//
// about all that match. Files without an extension count as "(none)"; an
// extension is in lower case. The last two lines are left out when no file matches.
func (t *fileTools) globTool() (tool.Tool, error) {
	return newReadTool("glob", "Find files by name. Answers at most 100 paths, then counts by extension and the largest.",
		func(ctx context.Context, in globArgs) (string, error) {
			match, err := compileGlob(in.Pattern, false)
			if err != nil {
				return "", fmt.Errorf("pattern: %w", err)
			}
			names, err := t.files.listFiles(ctx)
			if err != nil {
				return "", err
			}
			var files []sizedFile
			dirs := &dirStack{ws: t.ws}
			defer dirs.closeDirs()
			for i, name := range names {
				if i%ctxEvery == 0 && ctx.Err() != nil {
					return "", ctx.Err()
				}
				if !match(name) {
					continue
				}
				if size, ok := dirs.fileSize(name); ok {
					files = append(files, sizedFile{name, size})
				}
			}
			return globText(files), nil
		})
}

func globText(files []sizedFile) string {
	var b strings.Builder
	total := int64(0)
	for i, f := range files {
		total += f.size
		if i < globPathsMax {
			b.WriteString(printableName(f.path) + "\n")
		}
	}
	fmt.Fprintf(&b, "[%d files, %d bytes]", len(files), total)
	if len(files) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "\n[extensions: %s]\n[largest: %s]", strings.Join(countExtensions(files), "; "), strings.Join(largestFiles(files), "; "))
	return b.String()
}

func countExtensions(files []sizedFile) []string {
	type group struct {
		ext   string
		files int
		bytes int64
	}
	byExt := map[string]group{}
	for _, f := range files {
		ext := strings.ToLower(path.Ext(f.path))
		if ext == "" || ext == "." || ext == strings.ToLower(path.Base(f.path)) {
			ext = "(none)"
		}
		ext = strings.Map(func(r rune) rune {
			if strings.ContainsRune(" ;]", r) {
				return '_'
			}
			return r
		}, printableName(ext))
		g := byExt[ext]
		byExt[ext] = group{ext, g.files + 1, g.bytes + f.size}
	}
	groups := make([]group, 0, len(byExt))
	for _, g := range byExt {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.ext, b.ext))
	})
	var items []string
	for _, g := range groups[:min(len(groups), globExtensionsMax)] {
		items = append(items, fmt.Sprintf("%s %d %d", g.ext, g.files, g.bytes))
	}
	return items
}

func largestFiles(files []sizedFile) []string {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b sizedFile) int { return cmp.Compare(b.size, a.size) })
	var items []string
	for _, f := range files[:min(len(files), globLargestMax)] {
		items = append(items, fmt.Sprintf("%s %d", printableName(f.path), f.size))
	}
	return items
}
