package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/term"
)

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

func (a *doctorCommands) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Args: none,
		Short: "Check what troupe needs here, and say what is proven and what is not",
		Long: `Look at what a run needs on this machine: the state directory and its owner, the
server, the disk and what it promises, the model and the keys, git, the clock. Each
check is proven, unproven (it cannot be seen from here) or failed, with a remedy.
The exit code is 1 if a check failed. Keys are never shown, and no model is asked.`,
		Example:     "  troupe doctor\n  troupe doctor -o json | jq '.[] | select(.status != \"proven\")'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(*cobra.Command, []string) error {
			sig := catch()
			defer sig.stop()
			return a.doctor(sig.starting)
		},
	}
}

// doctorTimeout bounds the questions to nodes and servers.
const doctorTimeout = 10 * time.Second

func (a *doctorCommands) doctor(ctx context.Context) error {
	ctx, end := context.WithTimeout(ctx, doctorTimeout)
	defer end()
	list := []checkup{a.checkBuild(), a.checkSettings()}
	if !a.sessions.conn.Given() {
		list = append(list, a.checkState()...)
	}
	list = append(list, a.checkNATS(ctx)...)
	list = append(list, a.checkDisk()...)
	list = append(list, a.checkModel(ctx), a.checkKeys(), checkGit(ctx), checkSandbox(ctx), a.checkAgents())
	failures := 0
	for _, c := range list {
		if c.Status == broken {
			failures++
		}
	}
	var err error
	if a.console.output != "table" {
		err = a.console.printData(list)
	} else {
		err = a.console.lines(a.checksText(list, failures))
	}
	if err != nil || failures == 0 {
		return err
	}
	return ended(exitFailed)
}

// checksText draws the checks: a mark, the name, the finding, the remedy below.
func (a *doctorCommands) checksText(list []checkup, failures int) []string {
	width, _ := term.Size(a.console.out)
	names := 0
	for _, c := range list {
		names = max(names, term.Width(c.Check))
	}
	var lines []string
	open := 0
	for _, c := range list {
		mark, style := a.console.style.Green("✓"), func(s string) string { return s }
		switch c.Status {
		case unproven:
			open++
			mark = a.console.style.Yellow("?")
		case broken:
			mark, style = a.console.style.Red("✗"), a.console.style.Red
		}
		room := width - names - 4
		for i, l := range term.Wrap(term.Line(c.Detail), room) {
			if i == 0 {
				lines = append(lines, mark+" "+a.console.style.Bold(term.Pad(c.Check, names))+"  "+style(l))
			} else {
				lines = append(lines, term.Pad("", names+4)+style(l))
			}
		}
		if c.Remedy != "" && c.Status != proven {
			for _, l := range term.Wrap("→ "+term.Line(c.Remedy), room) {
				lines = append(lines, term.Pad("", names+4)+a.console.style.Dim(l))
			}
		}
	}
	return append(lines, "", fmt.Sprintf("%d proven, %d unproven, %d failed", len(list)-open-failures, open, failures))
}

// checkState checks the state directory, its owner and what the owner wrote.
func (a *doctorCommands) checkState() []checkup {
	dir := statedir.StateDir(a.sessions.storeIn)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return []checkup{{"state directory", unproven, dir + " is not there yet", "the first run makes it"}}
	case err != nil:
		return []checkup{{"state directory", broken, err.Error(), "name another with --store-dir"}}
	case !info.IsDir():
		return []checkup{{"state directory", broken, dir + " is not a directory", "name another with --store-dir"}}
	}
	c := checkup{"state directory", proven, fmt.Sprintf("%s, mode %#o", dir, info.Mode().Perm()), ""}
	if info.Mode().Perm()&0o077 != 0 {
		c.Status, c.Detail, c.Remedy = unproven, c.Detail+": other users of this machine may look into it", "chmod 700 "+dir
	}
	list := []checkup{c, checkWritable(dir)}
	owned, err := statedir.Owned(dir)
	switch {
	case err != nil:
		list = append(list, checkup{"owner", broken, err.Error(), "make the directory yours"})
	case owned:
		list = append(list, checkOwner(dir))
	default:
		list = append(list, checkup{"owner", proven, "nobody owns it now: the next command may", ""})
	}
	return list
}

// checkOwner checks what the owner of a directory reports about itself.
func checkOwner(dir string) checkup {
	file, err := statedir.ReadNodeFile(dir)
	if errors.Is(err, statedir.ErrStateDir) {
		return checkup{"owner", broken, plainError(err), "chmod 700 " + dir + ", if nobody else can have written in it"}
	}
	if errors.Is(err, statedir.ErrNodeFile) {
		return checkup{"owner", broken, plainError(err), "if it is of a node of yours, chmod 600 " + statedir.NodeFilePath(dir) + "; else end the process that has the directory, and remove it"}
	}
	if err != nil {
		return checkup{"owner", broken, "a process has the directory, and " + err.Error(), "it may be starting or hang: end it, then try again"}
	}
	return checkup{"owner", proven, fmt.Sprintf("process %d, at %s", file.PID, cmp.Or(file.Address, file.Socket)), ""}
}

// checkWritable writes a small file to the disk and removes it.
func checkWritable(dir string) checkup {
	began := time.Now()
	if err := statedir.ProbeDisk(dir); err != nil {
		return checkup{"writing", broken, plainError(err), statedir.DiskRemedy(dir, err) + ", or name another with --store-dir"}
	}
	return checkup{"writing", proven, "a file was written and synced in " + time.Since(began).Round(10*time.Microsecond).String(), ""}
}

// checkDisk looks at the room that is left.
func (a *doctorCommands) checkDisk() []checkup {
	if a.sessions.conn.Given() {
		return nil
	}
	dir := statedir.StateDir(a.sessions.storeIn)
	for {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}
		dir = parent(dir)
	}
	free, err := statedir.DiskFree(dir)
	switch {
	case err != nil:
		return []checkup{{"disk", unproven, err.Error(), "look with df"}}
	case free < 2*embedded.StoreMin:
		return []checkup{{"disk", broken, fmt.Sprintf("%d MiB are free, %d are needed", free>>20, 2*embedded.StoreMin>>20), "free some, or name another --store-dir"}}
	case free < 2*embedded.DiskMargin:
		return []checkup{{"disk", unproven, fmt.Sprintf("%d MiB are free: enough for a while", free>>20), "free some: troupe keeps away from the last GiB"}}
	}
	return []checkup{{"disk", proven, fmt.Sprintf("%.1f GiB are free", float64(free)/(1<<30)), ""}}
}
