// Package models holds the commands about models, and chooses the model of a run on this
// machine.
package models

import (
	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Commands are about models.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// Models makes the command models.
func (cs *Commands) Models() *cobra.Command {
	c := command.Group("models", "List models and prices, or test one",
		"A run uses the model of --model, else the configured one, else one whose key is in the\nenvironment, else a local Ollama, else builtin/scout, which needs no key.",
		"  troupe models list\n  troupe models ping anthropic/claude-sonnet-5-5")
	c.AddCommand(cs.listCommand(), cs.pingCommand())
	return c
}
