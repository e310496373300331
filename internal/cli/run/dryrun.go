package run

import (
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/runs"
	"github.com/troupe-run/troupe/internal/term"
)

// printPreview prints what a run would be opened with. If the run would end before its first call, the exit code is that of
// its reason.
func printPreview(c *console.Console, a client.RunAccepted) error {
	if c.Output != "text" {
		if err := c.PrintData(a); err != nil {
			return err
		}
		return previewCode(a)
	}
	for _, n := range a.Notes {
		c.Say(c.ErrStyle.Dim("note   ") + term.CleanLine(n))
	}
	if err := c.PrintLines(runs.DrawPreview(c, a)); err != nil {
		return err
	}
	return previewCode(a)
}

func previewCode(a client.RunAccepted) error {
	if a.Preview.StopReason == "" {
		return nil
	}
	return exit.WithCode(exit.ForReason(a.Preview.StopReason, false))
}
