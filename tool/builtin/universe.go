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

	"github.com/bmatcuk/doublestar/v4"
)

// filesMax bounds the files that one search looks at.
const filesMax = 1_000_000

// pipePatience is how long git lists the files of a tree before somebody looks for named pipes there, which git
// would wait for.
const pipePatience = 300 * time.Millisecond

// universe are the files that grep and glob see, sorted: in a git work tree what
// git tracks or would track (.gitignore is honored, submodules are not entered),
// elsewhere all below the directory but .git, vendor and node_modules. Reports
// that troupe wrote are left out, and what Config.Without names.
func (p *place) universe(ctx context.Context) ([]string, error) {
	names, ok, err := p.tracked(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		if names, err = p.walk(ctx); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	names = slices.Compact(names) // a file in conflict is listed once for each side
	return slices.DeleteFunc(names, func(name string) bool { return p.without(name) || p.ours(name) }), nil
}

// tracked asks git; ok is false where there is no git or no work tree.
func (p *place) tracked(ctx context.Context) (names []string, ok bool, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, gitPatience, errSlow)
	defer cancel()
	r, err := findRepository(limited, p)
	if err != nil {
		return nil, false, ctx.Err()
	}
	v, err := newView(r, true)
	if err != nil {
		return nil, false, err
	}
	defer v.remove()
	watch := time.AfterFunc(pipePatience, func() {
		if p.holdsPipe(limited, r.top.path) {
			cancel()
		}
	})
	defer watch.Stop()
	out, err := v.list(limited, p, "ls-files", "-z", "-co", "--exclude-standard")
	if err != nil {
		return nil, false, ctx.Err()
	}
	for name := range bytes.SplitSeq(out.text, []byte{0}) {
		if len(name) > 0 && name[len(name)-1] != '/' && len(names) < filesMax {
			names = append(names, string(name))
		}
	}
	if out.cut && len(names) > 0 {
		names = names[:len(names)-1] // the last name may be a part of one
	}
	if len(names) == 0 && p.ignored(limited, v) {
		return nil, false, ctx.Err()
	}
	return names, true, nil
}

// holdsPipe reports whether git may wait for a named pipe below the directory, or one that has the name of a list of
// what is ignored above it: such a tree is searched without git.
func (p *place) holdsPipe(ctx context.Context, top string) bool {
	for at := p.dir; at != top && under(top, at); {
		at = filepath.Dir(at)
		if info, err := os.Lstat(filepath.Join(at, ".gitignore")); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
			return true
		}
	}
	found := errors.New("found")
	return errors.Is(fs.WalkDir(p.root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return ctx.Err() // what we cannot read, git cannot either
		}
		if d.Type()&fs.ModeNamedPipe != 0 {
			return found
		}
		return ctx.Err()
	}), found)
}

// ignored reports whether the directory lies in a work tree that ignores it.
func (p *place) ignored(ctx context.Context, v *view) bool {
	_, err := v.list(ctx, p, "check-ignore", "-q", ".")
	return err == nil
}

var walkedAround = []string{".git", "vendor", "node_modules"}

func (p *place) walk(ctx context.Context) ([]string, error) {
	var names []string
	dirs := []string{"."}
	for len(dirs) > 0 && len(names) < filesMax {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entries, err := p.entries(dir)
		if err != nil {
			continue // not readable for us: nothing to search
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

// size is that of a regular file; ok is false for anything else.
func (p *place) size(name string) (size int64, ok bool) {
	info, err := p.root.Lstat(filepath.FromSlash(name))
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// within keeps the names that are dir or below it.
func within(names []string, dir string) []string {
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

// matcher compiles a glob. A pattern without a slash is matched with the last
// element of a path where base is true, as in grep; else with the whole path.
func matcher(pattern string, base bool) (func(name string) bool, error) {
	pattern = strings.TrimPrefix(strings.TrimSpace(pattern), "./")
	if !doublestar.ValidatePattern(pattern) {
		return nil, doublestar.ErrBadPattern
	}
	base = base && !strings.Contains(pattern, "/")
	return func(name string) bool {
		if base {
			name = path.Base(name)
		}
		return doublestar.MatchUnvalidated(pattern, name)
	}, nil
}

// exists tells a path that is not there from one where nothing was found.
func (p *place) exists(name string) (fs.FileInfo, error) {
	info, err := p.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, plainly(name, err)
	}
	return info, nil
}
