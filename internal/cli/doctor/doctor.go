// Package doctor holds the commands that check this machine and print the version.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Commands check this machine.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// Status of a check: it was seen to hold, could not be seen from here, or does
// not hold.
const (
	proven   = "proven"
	unproven = "unproven"
	broken   = "failed"
)

// checkup is one thing that was looked at.
type checkup struct {
	Check  string `json:"check"`
	Status string `json:"status"` // proven, unproven, failed
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Doctor makes the command doctor.
func (cs *Commands) Doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Args: command.NoArguments,
		Short: "Check this machine's setup and report what is proven",
		Long: `Check what a run needs on this machine: the state directory and its owner, the server,
the disk and its durability, the model and the keys, git, the clock. Each check is
proven, unproven (this command cannot verify it) or failed, with a remedy. The exit
code is 1 if a check failed. Keys are never shown, and no model is called.`,
		Example:     "  troupe doctor\n  troupe doctor -o json | jq '.[] | select(.status != \"proven\")'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			sig := interrupt.Catch()
			defer sig.Stop()
			return cs.checkAll(sig.Starting)
		},
	}
}

// doctorTimeout bounds the questions to nodes and servers.
const doctorTimeout = 10 * time.Second

func (cs *Commands) checkAll(ctx context.Context) error {
	ctx, end := context.WithTimeout(ctx, doctorTimeout)
	defer end()
	list := []checkup{cs.checkBuild(), cs.checkSettings()}
	if !cs.Sessions.Conn.NamesServer() {
		list = append(list, cs.checkState()...)
	}
	list = append(list, cs.checkNATS(ctx)...)
	list = append(list, cs.checkDisk()...)
	list = append(list, cs.checkModel(ctx), cs.checkKeys(), checkGit(ctx), checkSandbox(ctx), cs.checkAgents())
	failures := 0
	for _, c := range list {
		if c.Status == broken {
			failures++
		}
	}
	var err error
	if cs.Console.Output != "table" {
		err = cs.Console.PrintData(list)
	} else {
		err = cs.Console.PrintLines(cs.checkLines(list, failures))
	}
	if err != nil || failures == 0 {
		return err
	}
	return exit.WithCode(exit.Failed)
}

// checkLines draws the checks: a mark, the name, the finding, the remedy below.
func (cs *Commands) checkLines(list []checkup, failures int) []string {
	width, _ := term.Size(cs.Console.Out)
	names := 0
	for _, c := range list {
		names = max(names, term.Width(c.Check))
	}
	var lines []string
	open := 0
	for _, c := range list {
		mark, style := cs.Console.Style.Green("✓"), func(s string) string { return s }
		switch c.Status {
		case unproven:
			open++
			mark = cs.Console.Style.Yellow("?")
		case broken:
			mark, style = cs.Console.Style.Red("✗"), cs.Console.Style.Red
		}
		room := width - names - 4
		for i, l := range term.Wrap(term.CleanLine(c.Detail), room) {
			if i == 0 {
				lines = append(lines, mark+" "+cs.Console.Style.Bold(term.Pad(c.Check, names))+"  "+style(l))
			} else {
				lines = append(lines, term.Pad("", names+4)+style(l))
			}
		}
		if c.Remedy != "" && c.Status != proven {
			for _, l := range term.Wrap("→ "+term.CleanLine(c.Remedy), room) {
				lines = append(lines, term.Pad("", names+4)+cs.Console.Style.Dim(l))
			}
		}
	}
	return append(lines, "", fmt.Sprintf("%d proven, %d unproven, %d failed", len(list)-open-failures, open, failures))
}
