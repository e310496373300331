package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/follow"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/toolname"
)

// Files of the demo in its directory. demoState is the state directory of its nodes.
const (
	demoState     = "state"
	demoRunFile   = "run"         // holds the id of the newest run
	demoPriceFile = "prices.json" // prices of the scripted model
)

// demoPace is how long the scripted model takes for a reply: with it, the demo takes about 20 s.
const demoPace = 3500 * time.Millisecond

// Demo makes the command demo.
func (cs *Commands) Demo() *cobra.Command {
	var resume bool
	var pace time.Duration
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show how a run survives kill -9: 20 s, scripted, without a key",
		Long: `Run three scripted agents that ship nine orders. Each order is a tool call with a side effect: it appends a line
to a ledger file. The command says how to kill it. "troupe demo --continue", in any terminal, takes the run over,
finishes it, and checks the ledger: each order was shipped once, and the money of both processes was counted.
"troupe run --resume", which "troupe list" names for a killed run, does the same for a run of the demo.

The demo needs no key and no network. Its files are in $XDG_STATE_HOME/troupe-demo (default:
~/.local/state/troupe-demo), or in --store-dir, and its run in the directory state there: "troupe tree last
--store-dir ~/.local/state/troupe-demo/state" shows it.

Exit codes are those of troupe run; 1 also if the ledger does not have each order once.`,
		Example:     "  troupe demo\n  troupe demo --continue",
		Args:        command.NoArguments,
		Annotations: map[string]string{command.Formats: command.RunFormats},
		RunE: func(*cobra.Command, []string) error {
			if pace < 0 {
				return exit.UsageError("leave --pace out for about 20 s in all", "--pace must not be negative: %s", pace)
			}
			return cs.runDemo(resume, pace)
		},
	}
	c.Flags().BoolVar(&resume, "continue", false, "take over the newest demo run, or follow it while its process lives")
	c.Flags().DurationVar(&pace, "pace", demoPace, "how long the scripted model takes for a reply")
	return c
}

// demo is what the command demo shows around a run.
type demo struct {
	again  string // the command that continues it
	ledger string // file
	state  string // state directory of its nodes
}

// runDemo starts the run of the demo or continues the newest one, and checks its ledger at the end.
func (cs *Commands) runDemo(resume bool, pace time.Duration) error {
	if cs.Sessions.Conn.NamesServer() {
		return exit.UsageError("leave out -s and --context, and unset NATS_URL",
			"troupe demo starts a node of its own and uses no NATS server")
	}
	d := demo{again: "troupe demo --continue"}
	dir := statedir.StateDir("") + "-demo"
	if cs.Sessions.StateDir != "" {
		d.again += " --store-dir " + session.QuoteForShell(session.AbsolutePath(cs.Sessions.StateDir))
		dir = cs.Sessions.StateDir
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("directory of the demo: %w", err)
	}
	id, err := demoRun(dir, resume)
	if err != nil {
		return err
	}
	if err := d.useParts(cs.Sessions, dir, id, pace); err != nil {
		return err
	}
	flags := &request.Flags{LogPatience: follow.LogPatience, Request: client.RunRequest{RunID: id, Resume: resume}}
	if !resume {
		flags.Request.Prompt, flags.Request.Agent, flags.Request.Model = "Ship the nine orders of today.", demoAgent, demoModel
		flags.Request.MaxBudgetUSD, flags.Request.AllowedTools = demoBudgetUSD, []string{demoTool, toolname.Delegate}
	}
	err = cs.followRun(flags, &d)
	var refused *client.Error
	if resume && errors.As(err, &refused) && refused.Code == client.CodeNotFound {
		return exit.UsageError("troupe demo starts one",
			"there is no demo to continue: the newest one ended before its run began")
	}
	return err
}

// useParts makes the sessions of this process those of the demo in a directory, for one of its runs.
func (d *demo) useParts(o *session.Opener, dir, id string, pace time.Duration) (err error) {
	d.ledger, d.state = filepath.Join(dir, ledgerName(id)), filepath.Join(dir, demoState)
	prices := filepath.Join(dir, demoPriceFile)
	if err := os.WriteFile(prices, []byte(demoPrices), 0o600); err != nil {
		return fmt.Errorf("files of the demo: %w", err)
	}
	o.StateDir, o.PricingFile = d.state, prices
	if o.Contributions, err = demoContributions(dir, pace); err != nil {
		return fmt.Errorf("parts of the demo: %w", err)
	}
	return nil
}

// resumedDemo prepares the sessions for the run that --resume names, if it is one of the demo, and else returns nil.
// No file defines the demo's tool, agents and model: without them each of its agents would ask a person about the
// difference.
func resumedDemo(o *session.Opener, flags *request.Flags) (*demo, error) {
	if !flags.Request.Resume {
		return nil, nil
	}
	state, err := filepath.Abs(o.StateDir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	dir := filepath.Dir(state)
	prices, err := safefile.Read(filepath.Join(dir, demoPriceFile), int64(len(demoPrices)))
	if o.Conn.NamesServer() || filepath.Base(state) != demoState || err != nil || string(prices) != demoPrices {
		return nil, nil
	}
	ofDemo := false
	err = o.VisitRun(session.ToInspect, flags.Request.RunID, func(ctx context.Context, s *session.Session, run string) error {
		info, err := s.State(ctx, run)
		flags.Request.RunID, ofDemo = run, err == nil && info.Model == demoModel
		return err
	})
	if err != nil || !ofDemo {
		return nil, err
	}
	d := &demo{again: "troupe run --resume " + flags.Request.RunID + " --store-dir " + session.QuoteForShell(session.AbsolutePath(o.StateDir))}
	return d, d.useParts(o, dir, flags.Request.RunID, demoPace)
}

// headerLines tells the user how to kill the process that runs the agents.
func (d *demo) headerLines(s *session.Session) []string {
	pid := cmp.Or(s.OwnerPID, os.Getpid())
	return []string{fmt.Sprintf("kill me: pid %d. In a second terminal:", pid), fmt.Sprintf("  kill -9 %d; %s", pid, d.again)}
}

// report prints what the ledger and the budget say at the end. It fails if an order was not shipped once.
func (d *demo) report(a *console.Console, r event.Result) error {
	shipped, err := readLedger(d.ledger)
	if err != nil {
		return err
	}
	a.Say("ledger  " + shipped.summary())
	a.Say("        " + term.CleanLine(d.ledger))
	money := "money   " + term.FormatMoney(r.CostUSD, r.Budget.LimitUSD, r.Budget.ReservedUSD, r.CostEstimated)
	if r.Budget.Unknown > 0 {
		money += "; model calls that the kill cut off count at their maximum"
	}
	a.Say(money)
	a.Say("look    troupe tree last --store-dir " + session.QuoteForShell(d.state))
	if r.IsError {
		return nil // the exit code says so
	}
	return shipped.check()
}

// demoRun returns the id of the run that the demo starts, or of the newest one.
func demoRun(dir string, resume bool) (string, error) {
	file := filepath.Join(dir, demoRunFile)
	if resume {
		data, err := safefile.Read(file, 64)
		if errors.Is(err, fs.ErrNotExist) {
			return "", &exit.Failure{Code: exit.Usage, Err: errors.New("there is no demo to continue"), Hint: "troupe demo starts one"}
		}
		if err != nil {
			return "", fmt.Errorf("run of the demo: %w", err)
		}
		return strings.TrimSpace(string(data)), nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("directory of the demo: %w", err)
	}
	id := client.NewID()
	if err := os.WriteFile(file, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("files of the demo: %w", err)
	}
	return id, nil
}
