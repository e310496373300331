// Package nodes holds the commands about nodes, and starts several on this machine.
package nodes

import (
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Commands are about nodes.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}
