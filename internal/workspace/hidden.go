package workspace

import (
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/trust"
)

// TrustedDirs returns the directories whose files decide what this node executes: its state (approvals, approved MCP
// servers, the password of the node), and the user's settings and agents, those of Claude Code too. No tool of a run sees
// them, even in the directory of the run.
func TrustedDirs(state string) []string {
	dirs := append([]string{statedir.StateDir(state), filepath.Dir(config.UserFile())}, agentfile.UserDirs()...)
	if home := agentfile.ClaudeHome(); home != "" {
		dirs = append(dirs, home)
	}
	return dirs
}

// HiddenDirs returns the trusted directories below the directory of a run. It refuses a run that would work in one of
// them, or that could replace a link on the way to one.
func (p *Directories) HiddenDirs(dir string) (below []string, err error) {
	if dir == "" {
		return nil, nil
	}
	work := filepath.Clean(dir) // without links: the code that opens it follows none
	for _, name := range p.trusted {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, refuse.Bad("name the directory by its whole path", "%s: %v", name, err)
		}
		real := trust.ResolvePath(abs)
		switch {
		case trust.IsBelow(real, work):
			return nil, refuse.Bad("name another directory", "dir: %s is in %s, which decides what this node executes", dir, abs)
		case trust.IsBelow(work, abs) && real != abs:
			return nil, refuse.Bad("name another directory, or put the link outside", "dir: %s holds a link on the way to %s, which decides what this node executes", dir, abs)
		case trust.IsBelow(work, real):
			below = append(below, real)
		}
	}
	slices.Sort(below)
	below = slices.Compact(below)
	return slices.DeleteFunc(slices.Clone(below), func(name string) bool {
		return slices.ContainsFunc(below, func(outer string) bool { return outer != name && trust.IsBelow(outer, name) })
	}), nil
}
