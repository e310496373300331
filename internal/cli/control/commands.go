// Package control holds the commands that steer, answer and stop a run, and change its budget.
package control

import (
	"context"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Commands steer, answer and stop a run.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// printRecorded reports that a command is in the log, and whether a node acts on it.
func (cs *Commands) printRecorded(_ context.Context, s *session.Session, run string) error {
	if s.Node != nil && !cs.Console.Quiet {
		cs.Console.Say("recorded; no node is running: " + s.Command("run --resume "+run) + " continues the run")
	}
	if cs.Console.Output == "table" {
		return nil
	}
	return cs.Console.PrintData(map[string]any{"run_id": run, "recorded": true, "running": s.Node == nil})
}
