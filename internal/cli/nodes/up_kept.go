package nodes

import (
	"context"
	"os"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// reportKeptRuns says which unfinished runs of `troupe run` the state directory holds: their logs are in files, and the
// nodes of troupe up read streams.
func reportKeptRuns(c *console.Console, o *session.Opener) {
	if _, err := os.Stat(statedir.LogsDir(statedir.StateDir(o.StateDir))); err != nil || c.Quiet {
		return
	}
	err := o.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
		if s.Node == nil {
			return nil // another process owns the directory, so that no server starts here
		}
		open, err := s.Node.UnfinishedRuns(ctx)
		if err != nil {
			return err
		}
		for i, r := range open[:min(len(open), keptRunsMax)] {
			if now, err := s.State(ctx, r.RunID); err == nil {
				open[i] = now
			} else {
				open[i].State = client.RunFinished // one of troupe up, whose logs are elsewhere
			}
		}
		for _, line := range describeKeptRuns(open[:min(len(open), keptRunsMax)], s.Command) {
			c.Say(c.ErrStyle.Yellow(line))
		}
		return nil
	})
	if err != nil { // troupe up works without this hint
		c.Logger().Warn("cannot look for unfinished runs of troupe run", "error", err)
	}
}

// keptRunsMax is how many unfinished runs are looked at.
const keptRunsMax = 100

// describeKeptRuns returns the lines about the unfinished runs among some; command completes a command line.
func describeKeptRuns(runs []client.RunInfo, command func(string) string) (lines []string) {
	waiting, stopped, newest := 0, 0, ""
	for _, r := range runs {
		switch r.State {
		case client.RunParked:
			waiting++
		case client.RunFinished:
		default:
			if stopped++; newest == "" {
				newest = term.CleanLine(r.RunID)
			}
		}
	}
	if waiting > 0 {
		lines = append(lines, "questions of "+console.CountOf(waiting, "run")+" of `troupe run` wait in this state directory, and these nodes do not read them: stop troupe up, then "+command("questions")+" shows them")
	}
	if stopped > 0 {
		lines = append(lines, console.CountOf(stopped, "unfinished run")+" of `troupe run` in this state directory, which these nodes do not continue: stop troupe up, then "+command("run --resume "+newest)+" continues the newest")
	}
	return lines
}
