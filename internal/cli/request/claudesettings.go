package request

import (
	"strings"

	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

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
