package request

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// NoteClaudeSettings says that the user's own files of Claude Code may not count, because another process hosts the run.
func NoteClaudeSettings(a *console.Console) {
	home := agentfile.ClaudeHome()
	for _, name := range []string{"settings.json", "CLAUDE.md"} {
		if _, err := os.Stat(filepath.Join(home, name)); home != "" && err == nil && !a.Quiet {
			a.Say("note: another process hosts this run; ~/.claude/" + name + " has no effect if that is troupe up or troupe-node")
		}
	}
}

// checkClaudeSettings reports what is wrong with the settings of Claude Code, of the user and of the directory: a node names
// only the place.
func (r *Flags) checkClaudeSettings() error {
	if r.Resume != "" {
		return nil // the run has its rules already
	}
	_, err := agentfile.ReadClaudeSettings(agentfile.ClaudeHome(), r.Request.Dir, func(string, string) bool { return true })
	if err != nil {
		return exit.UsageError("`troupe config validate` shows all errors; docs/permissions.md#settings-of-claude-code says which rules count", "%s", strings.ReplaceAll(err.Error(), "agentfile: ", ""))
	}
	return nil
}
