// Package control holds the commands that steer, answer and stop a run, and change its budget.
package control

import (
	"context"
	"maps"

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

// printInForce is printRecorded for a change: it also prints in one line what holds from now on, and adds the fields of
// the change to the JSON.
func (cs *Commands) printInForce(ctx context.Context, s *session.Session, run, line string, fields map[string]any) error {
	if cs.Console.Output == "table" {
		if !cs.Console.Quiet {
			if err := cs.Console.Print(line); err != nil {
				return err
			}
		}
		return cs.printRecorded(ctx, s, run)
	}
	doc := map[string]any{"run_id": run, "recorded": true, "running": s.Node == nil}
	maps.Copy(doc, fields)
	return cs.Console.PrintData(doc)
}
