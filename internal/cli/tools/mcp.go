package tools

import (
	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/mcpclient"
)

// MCP makes the command mcp.
func (cs *Commands) MCP() *cobra.Command {
	c := command.Group("mcp", "List, test and allow MCP servers, and be one",
		"MCP servers are named in .mcp.json of the directory, in the user's own mcp.json, in agent files, or in a file that --mcp-config names: docs/mcp.md.",
		"  troupe mcp list\n  troupe mcp allow files\n  troupe mcp test files\n  troupe mcp serve --dir ~/project")
	c.AddCommand(cs.listServersCommand(), cs.testServerCommand(), cs.allowServerCommand(), cs.serveCommand())
	return c
}

func (cs *Commands) serverLock() mcpclient.Lock {
	return mcpclient.OpenLock(statedir.StateDir(cs.Sessions.StateDir))
}
