// Package tools holds the commands about tools and MCP servers.
package tools

import (
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Commands are about tools and MCP servers.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}
