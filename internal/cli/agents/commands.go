package agents

import (
	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Agents makes the command agents.
func (cs *Commands) Agents() *cobra.Command {
	c := command.Group("agents", "List and check the available agents",
		"Agents are built in, or Markdown files: see docs/agentfiles.md and `troupe agents list`.", "  troupe agents list\n  troupe agents validate")
	c.AddCommand(cs.listCommand(), cs.describeCommand(), cs.validateCommand(), cs.promptCommand(), cs.slashCommands())
	return c
}

// Commands are about agent files.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}
