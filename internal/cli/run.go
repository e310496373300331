package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
)

func (a *runCommands) runCommand() *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "run [PROMPT|-]",
		Short: "Start a run, follow it, and print its result",
		Long: `Start a run and follow it to its end. Progress goes to stderr, the result to stdout.

Without a server (-s, --context, NATS_URL) the run goes to the node that owns the
state directory; if there is none, to a node in this process.

Ctrl-C stops the run at its next safe boundary, and prints the result; again
kills. Exit codes: 0 completed, 1 failed, 2 usage, 3 budget, 4 turns, calls or
time, 5 needs a person, 6 no NATS or node, 7 model provider, 8 refused, 130 and
143 interrupted.`,
		Example: `  troupe run --dir . "Investigate this repository and write report.md"
  echo "Summarize" | troupe run -m anthropic/claude-sonnet-5-5 --max-budget-usd 0.50 -
  troupe run -o json "..." | jq -r .result
  troupe run -o stream-json "..." | jq -c 'select(.kind == "tool.started")'
  troupe run --resume 01k9z3 --timeout 2h
  troupe run --fork 01k9z3@4 "Try it the other way"
  troupe run --dir . --record tape/ "Say what this is"; troupe run --dir . --replay tape/ "Say what this is"`,
		Annotations: map[string]string{formats: runFormats},
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.complete(a.console, a.origins, c, args); err != nil {
				return err
			}
			a.sessions.maxLive = flags.maxLive
			if err := a.sessions.tapes.check(flags.request.Dir, a.sessions.conn.Given(), flags.detach); err != nil {
				return err
			}
			if flags.detach {
				return a.start(c.Context(), &flags)
			}
			return a.follow(&flags)
		},
	}
	flags.add(c.Flags())
	c.Flags().StringVar(&flags.resume, "resume", "", "continue this unfinished run; with --timeout its agents have that much time from now on")
	a.sessions.tapes.add(c.Flags())
	c.Flags().DurationVar(&flags.patience, "journal-patience", journalPatience, "how long the run may be unable to write its log (a full disk) until this command gives up; the run can be resumed")
	c.Flags().IntVar(&flags.maxLive, "max-live-runs", 0, fmt.Sprintf("most runs that are live at once on a node in this process; later ones are queued (default %d)", node.MaxLiveRuns))
	c.Flags().BoolVar(&flags.detach, "detach", false, "print the run's id and return; the same as start")
	return c
}

func (a *runCommands) startCommand() *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:         "start [PROMPT|-]",
		Short:       "Start a run on a node that is running, and return",
		Example:     "  run=$(troupe start --dir . \"Investigate this repository\")\n  troupe result --wait $run",
		Annotations: map[string]string{formats: runFormats},
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.complete(a.console, a.origins, c, args); err != nil {
				return err
			}
			return a.start(c.Context(), &flags)
		},
	}
	flags.add(c.Flags())
	return c
}

// start asks a node that will be there after us.
func (a *runCommands) start(ctx context.Context, flags *runFlags) (err error) {
	s, err := a.sessions.sit(ctx, toJoin)
	if err != nil {
		return err
	}
	defer s.Client.Close()
	a.settle(&flags.request, s)
	accepted, err := flags.begin(s, a.sessions.storeIn)
	if err != nil {
		return err
	}
	if !a.console.quiet {
		a.console.say(a.header(s, accepted)[0])
	}
	if a.console.output == "text" {
		return a.console.print(accepted.RunID)
	}
	return a.console.printData(accepted)
}

// settle names the model of the settings, which a node elsewhere does not know.
func (a *runCommands) settle(q *client.RunRequest, s *seat) {
	if q.Model == "" && s.host == nil {
		q.Model = a.sessions.model
	}
}

const (
	takeoverTimeout = 60 * time.Second // how long a node elsewhere may be gone in the middle of a run
	takeoverPause   = 500 * time.Millisecond
)

// follow runs to the one result. The node may go away meanwhile: then the same
// request goes to the next one, or this process becomes it.
func (a *runCommands) follow(flags *runFlags) error {
	sig := catch()
	defer sig.stop()
	f := newFollower(a.console, flags.request.RunID, sig)
	f.journal = newJournalWatch(flags.patience, flags.request.TimeoutMS)
	var s *seat
	for {
		if s == nil {
			var err error
			if s, err = a.sessions.sit(sig.starting, toRun, flags.roots()...); err != nil {
				return err
			}
			leave := func() { _ = s.Close() } // there is no time to tell anybody
			sig.last.Store(&leave)
			if err := a.sessions.tapes.here(s); err != nil {
				return errors.Join(err, s.Close())
			}
		}
		end, err := a.attend(s, f, flags)
		if sig.second.Load() {
			select {} // whatever it is, it comes from the end of the process
		}
		if err == nil {
			return f.finish(s, end, &a.sessions.tapes)
		}
		f.rest()
		if err := f.journal.over(f.run, time.Now()); err != nil {
			return errors.Join(err, s.Close())
		}
		if !s.gone(err) || !f.mayWait(s) {
			return errors.Join(err, s.Close())
		}
		if f.accepted && f.journal.down == nil {
			f.note("the node is gone; waiting for the next one")
		}
		if s.joined == 0 {
			if err := pause(sig.starting, takeoverPause); err != nil {
				return err
			}
			continue // the connection is restored automatically
		}
		if err := s.Close(); err != nil {
			return err
		}
		s = nil
	}
}

// attend asks for the run and follows it.
func (a *runCommands) attend(s *seat, f *follower, flags *runFlags) (ending, error) {
	a.settle(&flags.request, s)
	if !f.accepted {
		a.tellUnfinished(s, flags.request.RunID)
	}
	f.sig.begun.Store(true)
	accepted, err := flags.begin(s, a.sessions.storeIn)
	if err != nil {
		return ending{}, err
	}
	if !f.accepted {
		f.head(a.header(s, accepted))
	}
	if !f.accepted {
		f.journal.accepted = time.Now()
	}
	f.accepted, f.lost = true, time.Time{}
	return f.watch(s)
}

// tellUnfinished names the runs that a node in this process does not continue.
func (a *runCommands) tellUnfinished(s *seat, own string) {
	if s.host == nil || a.console.quiet {
		return
	}
	open, err := s.host.Unfinished(s.ctx)
	if err != nil {
		return // a hint only
	}
	n, newest := 0, ""
	for _, i := range open {
		if i.RunID != own {
			n++
			if newest == "" {
				newest = i.RunID
			}
		}
	}
	switch {
	case n == 1:
		a.console.say(a.console.errors.Yellow(fmt.Sprintf("1 unfinished run: troupe run --resume %s continues it", term.Line(newest))))
	case n > 1:
		a.console.say(a.console.errors.Yellow(fmt.Sprintf("%d unfinished runs: troupe run --resume %s continues the newest", n, term.Line(newest))))
	}
}

// header returns the lines shown before a run: the model and why, where to watch, and
// what the run may spend.
func (a *runCommands) header(s *seat, r client.RunAccepted) []string {
	st := a.console.errors
	nats := st.Dim("nats   ") + term.Line(s.url)
	if s.joined > 0 {
		nats += fmt.Sprintf(" (node of process %d)", s.joined)
	}
	watch := cmp.Or(s.watch, "nats -s "+s.url)
	if a.sessions.conn.Context != "" && a.sessions.conn.Servers == "" {
		watch = "nats --context " + a.sessions.conn.Context
	}
	lines := []string{
		st.Dim("model  ") + st.Bold(term.Line(r.Model)) + " (" + term.Line(r.Why) + ")",
		nats + st.Dim("   watch: ") + term.Line(watch) + " sub '" + s.Names().Events() + "'",
	}
	budget := st.Dim("run    ") + term.Line(r.RunID)
	if r.Limit > 0 {
		budget += st.Dim("   budget ") + term.Tokens(r.Limit) + " tokens"
	}
	lines = append(lines, budget)
	for _, n := range r.Notes {
		lines = append(lines, st.Dim("note   ")+term.Line(n))
	}
	return lines
}
