package workspace

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/internal/workdir"
)

// TrustedDirs returns the directories whose files decide what this node executes: its state (approvals, approved MCP
// servers, the password of the node), and the user's settings and agents, those of Claude Code too. No tool of a run
// sees them, even in the directory of the run.
func TrustedDirs(state string) []string {
	dirs := append([]string{statedir.StateDir(state), filepath.Dir(config.UserFile())}, agentfile.UserDirs()...)
	if home := agentfile.ClaudeHome(); home != "" {
		dirs = append(dirs, home)
	}
	if home, err := os.UserHomeDir(); err == nil { // another process may have no CLAUDE_CONFIG_DIR
		dirs = append(dirs, filepath.Join(home, ".claude"))
	}
	return dirs
}

// trustedFiles returns the files in those directories that are often links into a directory that the user works in.
func trustedFiles() []string {
	files := []string{config.UserFile()}
	if home := agentfile.ClaudeHome(); home != "" {
		files = append(files, filepath.Join(home, "settings.json"), filepath.Join(home, "CLAUDE.md"))
	}
	return files
}

// checkLinkedFiles refuses a run whose directory has the file that a trusted one links to: the run could change it.
func checkLinkedFiles(dir, work string) error {
	for _, file := range trustedFiles() {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			continue // there is none, or what reads it reports why not
		}
		if home := trust.ResolvePath(filepath.Dir(file)); real != filepath.Join(home, filepath.Base(file)) && workdir.IsBelow(work, real) {
			return refuse.Bad("name another directory, or keep a copy of the file instead of a link",
				"dir: %s has the file that %s links to, which decides what this node executes", dir, file)
		}
	}
	return nil
}

// HiddenDirs returns the trusted directories below the directory of a run. It refuses a run that would work in one of
// them, or that could replace a link on the way to one.
func (p *Directories) HiddenDirs(dir string) (below []string, err error) {
	if dir == "" {
		return nil, nil
	}
	work := filepath.Clean(dir) // without links: the code that opens it follows none
	if err := checkLinkedFiles(dir, work); err != nil {
		return nil, err
	}
	for _, name := range p.trusted {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, refuse.Bad("name the directory by its whole path", "%s: %v", name, err)
		}
		real := trust.ResolvePath(abs)
		switch {
		case workdir.IsBelow(real, work):
			return nil, refuse.Bad("name another directory", "dir: %s is in %s, which decides what this node executes", dir, abs)
		case workdir.IsBelow(work, abs) && real != abs:
			return nil, refuse.Bad("name another directory, or put the link outside",
				"dir: %s holds a link on the way to %s, which decides what this node executes", dir, abs)
		case workdir.IsBelow(work, real):
			below = append(below, real)
		}
	}
	slices.Sort(below)
	below = slices.Compact(below)
	return slices.DeleteFunc(slices.Clone(below), func(name string) bool {
		return slices.ContainsFunc(below, func(outer string) bool { return outer != name && workdir.IsBelow(outer, name) })
	}), nil
}
