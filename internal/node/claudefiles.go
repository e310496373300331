package node

import (
	"path/filepath"

	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// WithClaudeFiles returns c for a node that applies the user's own files of Claude Code: permission rules, CLAUDE.md,
// and, read now, hooks and variables of commands. Deny and ask rules and hooks hold for all runs; what grants
// something, and the variables, for runs that a command of the user starts.
func (c Config) WithClaudeFiles() (Config, []agentfile.Note, error) {
	home := agentfile.ClaudeHome()
	if home == "" {
		return c, nil, nil
	}
	hooks, notes, err := agentfile.LoadHooks(claudeSettingsFile(home))
	if err != nil {
		return c, nil, err
	}
	env, err := agentfile.LoadClaudeEnv(claudeSettingsFile(home))
	if err != nil {
		return c, nil, err
	}
	c.ClaudeHome, c.CommandEnv, c.Hooks = home, env, append(c.Hooks[:len(c.Hooks):len(c.Hooks)], hooks...)
	return c, notes, nil
}

func claudeSettingsFile(home string) string { return filepath.Join(home, "settings.json") }

// envOfCommands returns the variables of the user's own settings for commands of a run in a directory: none if the
// run could change the file that has them.
func (c Config) envOfCommands(workspace string) []string {
	if len(c.CommandEnv) == 0 || c.trustPolicy().MayChange(claudeSettingsFile(c.ClaudeHome), workspace) {
		return nil
	}
	return c.CommandEnv
}
