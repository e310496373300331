// Package run holds the commands that start and follow a run: run, start, chat, follow and demo.
package run

import (
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Commands start and follow a run.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
	Origins  *request.Origins

	printed      map[string]bool // lines above runs
	conversation string          // of a chat; "": no chat
	forkNotes    []string        // about the directory of a fork, until a node has accepted it
}
