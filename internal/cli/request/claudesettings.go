package request

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/workdir"
)

// NoteClaudeSettings says that the user's own files of Claude Code do not count in a run: its node reads none, or
// cannot tell who has sent the request.
func NoteClaudeSettings(a *console.Console) {
	home := agentfile.ClaudeHome()
	for _, name := range []string{"settings.json", "CLAUDE.md"} {
		if _, err := os.Stat(filepath.Join(home, name)); home != "" && err == nil && !a.Quiet {
			a.Say("note: the node of this run does not apply your ~/.claude/" + name + " (troupe run and troupe up do, and troupe-node --claude-files)")
		}
	}
}

// checkClaudeSettings reports errors in the settings of Claude Code, of the user and of the directory: a node names
// only the place.
func (r *Flags) checkClaudeSettings() error {
	if r.Resume != "" {
		return nil // the run has its rules already
	}
	dir := r.Request.Dir
	if dir != "" {
		dir = workdir.Real(dir)
	}
	_, err := agentfile.ReadClaudeSettings(agentfile.ClaudeHome(), dir, func(string, string) bool { return true })
	if err != nil {
		return exit.UsageError("`troupe config validate` shows all errors; docs/permissions.md#settings-of-claude-code says which rules count", "%s", strings.ReplaceAll(err.Error(), "agentfile: ", ""))
	}
	return nil
}
