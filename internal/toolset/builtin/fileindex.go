package builtin

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/workdir"
)

// fileIndex lists the files that grep and glob search.
type fileIndex struct{ ws *toolWorkspace }

// filesMax bounds the files that one search looks at.
const filesMax = 1_000_000

// pipePatience is how long git lists the files of a tree before holdsPipe looks there for named pipes, on which git
// would block.
const pipePatience = 300 * time.Millisecond

// listFiles returns the files that grep and glob search, sorted: in a git work tree the files
// that git tracks or would track (.gitignore is honored, submodules are not entered),
// elsewhere all files except those below .git, vendor and node_modules. Reports that
// troupe wrote are left out, and what Config.Without names.
func (x *fileIndex) listFiles(ctx context.Context) ([]string, error) {
	names, ok, err := x.trackedFiles(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		if names, err = x.walkFiles(ctx); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	names = slices.Compact(names) // a file in conflict is listed once for each side
	behindLink := x.linkedDirs()
	return slices.DeleteFunc(names, func(name string) bool {
		return x.ws.isExcluded(name) || behindLink(path.Dir(name)) || x.ws.isReport(name)
	}), nil
}

// linkedDirs returns a function that reports whether a link stands on the way to a directory. An index of git may name
// files that lay in a directory which is a link now: the names would lead elsewhere.
func (x *fileIndex) linkedDirs() func(dir string) bool {
	known := map[string]bool{".": false}
	var linked func(dir string) bool
	linked = func(dir string) bool {
		is, seen := known[dir]
		if !seen {
			info, err := x.ws.root.Lstat(filepath.FromSlash(dir))
			is = linked(path.Dir(dir)) || err == nil && info.Mode()&fs.ModeSymlink != 0
			known[dir] = is
		}
		return is
	}
	return linked
}

// trackedFiles asks git; ok is false if there is no git or no work tree.
func (x *fileIndex) trackedFiles(ctx context.Context) (names []string, ok bool, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, gitPatience, errSlow)
	defer cancel()
	r, err := findRepository(limited, x.ws)
	if err != nil {
		return nil, false, ctx.Err()
	}
	v, err := newView(r, true)
	if err != nil {
		return nil, false, err
	}
	defer v.removeView()
	watch := time.AfterFunc(pipePatience, func() {
		if x.holdsPipe(limited, r.top.path) {
			cancel()
		}
	})
	defer watch.Stop()
	out, err := v.listFiles(limited, x.ws, "ls-files", "-z", "-co", "--exclude-standard")
	if err != nil {
		return nil, false, ctx.Err()
	}
	for name := range bytes.SplitSeq(out.text, []byte{0}) {
		if len(name) > 0 && name[len(name)-1] != '/' && len(names) < filesMax {
			names = append(names, string(name))
		}
	}
	if out.cut && len(names) > 0 {
		names = names[:len(names)-1] // the last name may be cut
	}
	if len(names) == 0 && x.isIgnored(limited, v) {
		return nil, false, ctx.Err()
	}
	return names, true, nil
}

// holdsPipe reports whether git may block on a named pipe: one below the directory, or one called .gitignore above it.
// Such a tree is searched without git.
func (x *fileIndex) holdsPipe(ctx context.Context, top string) bool {
	for at := x.ws.dir; at != top && workdir.IsBelow(top, at); {
		at = filepath.Dir(at)
		if info, err := os.Lstat(filepath.Join(at, ".gitignore")); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
			return true
		}
	}
	found := errors.New("found")
	return errors.Is(fs.WalkDir(x.ws.root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return ctx.Err() // git cannot read it either
		}
		if d.Type()&fs.ModeNamedPipe != 0 {
			return found
		}
		return ctx.Err()
	}), found)
}

// isIgnored reports whether the directory lies in a work tree that ignores it.
func (x *fileIndex) isIgnored(ctx context.Context, v *gitView) bool {
	_, err := v.listFiles(ctx, x.ws, "check-ignore", "-q", ".")
	return err == nil
}

var walkedAround = []string{".git", "vendor", "node_modules"}

func (x *fileIndex) walkFiles(ctx context.Context) ([]string, error) {
	var names []string
	dirs := []string{"."}
	for len(dirs) > 0 && len(names) < filesMax {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entries, err := x.ws.readEntries(dir)
		if err != nil {
			continue // it cannot be read: nothing to search
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			switch {
			case e.IsDir() && !slices.Contains(walkedAround, e.Name()):
				dirs = append(dirs, name)
			case e.Type().IsRegular():
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// namesWithin keeps the names that are dir or lie below it.
func namesWithin(names []string, dir string) []string {
	if dir == "." {
		return names
	}
	var kept []string
	for _, name := range names {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			kept = append(kept, name)
		}
	}
	return kept
}
