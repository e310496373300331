// Package runs holds the commands that show, export and delete runs.
package runs

import (
	"context"
	"errors"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Commands show, export and delete runs.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// ignoreDetach treats Ctrl-C as the normal end of a command that only observes.
func ignoreDetach(err error) error {
	if errors.Is(err, context.Canceled) && !client.Lost(err) {
		return nil
	}
	return err
}
