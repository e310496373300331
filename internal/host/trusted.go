package host

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/settings"
)

// trustedDirs are the directories whose files decide what this node executes: its state (approvals, allowed MCP
// servers, the password of the node), and the user's settings and agents. No tool of a run sees them, also where they lie
// in the directory of the run.
func trustedDirs(state string) []string {
	return append([]string{bus.StateDir(state), filepath.Dir(settings.UserFile())}, agentfile.UserDirs()...)
}

// hidden are the trusted directories below the directory of a run. A run that would work in one of them, or that could
// replace a link on the way to one, is refused.
func (p *places) hidden(dir string) (below []string, err error) {
	if dir == "" {
		return nil, nil
	}
	work := filepath.Clean(dir) // without links: whoever opens it follows none
	for _, name := range p.trusted {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, bad("name the directory by its whole path", "%s: %v", name, err)
		}
		real := resolved(abs)
		switch {
		case isBelow(real, work):
			return nil, bad("name another directory", "dir: %s lies in %s, which decides what this node executes", dir, abs)
		case isBelow(work, abs) && real != abs:
			return nil, bad("name another directory, or put the link outside", "dir: %s holds a link on the way to %s, which decides what this node executes", dir, abs)
		case isBelow(work, real):
			below = append(below, real)
		}
	}
	slices.Sort(below)
	below = slices.Compact(below)
	return slices.DeleteFunc(slices.Clone(below), func(name string) bool {
		return slices.ContainsFunc(below, func(outer string) bool { return outer != name && isBelow(outer, name) })
	}), nil
}

// resolved is a path without links, as far as it is there.
func resolved(path string) string {
	real, err := filepath.EvalSymlinks(path)
	above := filepath.Dir(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) || above == path {
		if err != nil {
			return path
		}
		return real
	}
	return filepath.Join(resolved(above), filepath.Base(path))
}

// isBelow reports whether a path is a directory or below it.
func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
