package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/follow"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/telemetry"
	"github.com/troupe-run/troupe/internal/term"
)

// Run makes the command run.
func (cs *Commands) Run() *cobra.Command {
	var flags request.Flags
	c := &cobra.Command{
		Use:   "run [PROMPT|-]",
		Short: "Start a run, follow it, and print its result",
		Long: `Start a run and follow it to its end. Progress goes to stderr, the result to stdout.

Without a server (-s, --context, NATS_URL) the run goes to the node that owns the
state directory; if there is none, to a node in this process.

Ctrl-C stops the run at its next safe boundary, and after 5 s at once, and prints
the result; a second one ends this process.

Exit codes: 0 completed, 1 failed, 2 usage, 3 budget, 4 turns, calls or time,
5 needs a person, 6 no NATS or node, 7 model provider, 8 refused, 130 and 143
interrupted.`,
		Example: `  troupe run --dir . "Investigate this repository and write report.md"
  echo "Summarize" | troupe run -m openai/gpt-6-sol --max-budget-usd 0.50 -
  troupe run -o json "..." | jq -r .result
  troupe run -o stream-json "..." | jq -c 'select(.kind == "tool.started")'
  troupe run --at 18:00 --dir . "Summarize what changed today"
  troupe run --every "0 9 * * 1-5" --conversation daily "Which issues are new?"
  troupe run --dry-run --dir . -m openai/gpt-6-sol "Summarize"
  troupe run --resume 01k9z3 --timeout 2h
  troupe run --fork 01k9z3@4 "Try it the other way"
  troupe run --fork 01k9z3@root-1-0:4 "Look at the tests first"
  troupe compare 01k9z3 last
  troupe run --dir . --record rec/ "Say what this is"
  troupe run --dir . --replay rec/ "Say what this is"`,
		Annotations: map[string]string{command.Formats: command.RunFormats},
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.Complete(cs.Console, cs.Origins, c, args); err != nil {
				return err
			}
			if err := statedir.CheckLogStore(cs.Sessions.LogStore); err != nil {
				return exit.UsageError("leave --log-store out: the state directory keeps its log store", "--log-store: %s", exit.PlainText(err))
			}
			cs.Sessions.MaxLiveRuns = flags.MaxLiveRuns
			if err := cs.Sessions.Recordings.Check(flags.Request.Dir, cs.Sessions.Conn.NamesServer(), flags.Detach); err != nil {
				return err
			}
			return cs.withFork(&flags, func() error {
				if flags.Detach || flags.Request.DryRun || flags.IsScheduled() {
					return cs.startRun(c.Context(), &flags)
				}
				d, err := resumedDemo(cs.Sessions, &flags)
				if err != nil {
					return err
				}
				return cs.followRun(&flags, d)
			})
		},
	}
	flags.AddFlags(c.Flags())
	c.Flags().StringVar(&flags.Resume, "resume", "", "continue this unfinished run; --timeout then counts from now")
	cs.Sessions.Recordings.AddFlags(c.Flags())
	c.Flags().DurationVar(&flags.LogPatience, "log-patience", follow.LogPatience,
		"how long this command waits while the run cannot write its log (full disk); the run can be resumed")
	c.Flags().IntVar(&flags.MaxLiveRuns, "max-live-runs", 0, fmt.Sprintf("maximum live runs on a node in this process; later ones are queued (default %d)", node.MaxLiveRuns))
	c.Flags().StringVar(&cs.Sessions.LogStore, "log-store", "",
		"log store for a new state directory: local or jetstream (default local; an existing directory keeps its own)")
	c.Flags().StringVar(&cs.Sessions.HTTP, "http", "",
		"HOST:PORT of the HTTP API, while this process runs the node; the token is in the state directory (docs/http.md)")
	c.Flags().StringVar(&cs.Sessions.Telemetry.Endpoint, "otlp-endpoint", "", "of a node in this process: "+telemetry.EndpointUsage)
	c.Flags().StringVar(&cs.Sessions.Telemetry.Content, "telemetry-content", "", "of a node in this process: "+telemetry.ContentUsage)
	c.Flags().BoolVar(&flags.Request.DryRun, "dry-run", false, "print what the run would be opened with (model, limits, agents, tools), and begin nothing")
	c.Flags().BoolVar(&flags.Detach, "detach", false, "print the run's id and return; the same as start")
	return c
}

// applyModelSetting sets the configured model on the request if a node in another process handles it: that node does
// not read this user's settings.
func (cs *Commands) applyModelSetting(q *client.RunRequest, s *session.Session) {
	if q.Model == "" && s.Node == nil {
		q.Model = cs.Sessions.Model
	}
}

// takeoverPause is the pause before a request is repeated on a shared server.
const takeoverPause = 500 * time.Millisecond

// followRun starts the run and follows it until it has a result. If the node is lost, followRun sends the same request
// to the next node, or this process becomes the node. demo is nil unless the command is troupe demo.
func (cs *Commands) followRun(flags *request.Flags, demo *demo) error {
	if err := cs.findResumed(flags); err != nil {
		return err
	}
	sig := interrupt.Catch()
	defer sig.Stop()
	f := follow.New(cs.Console, flags.Request.RunID, sig, flags.LogPatience, time.Duration(flags.Request.TimeoutMS)*time.Millisecond)
	if flags.Request.Resume {
		f.SummarizeBefore(time.Now())
	}
	flags.Request.Interactive = f.HasPerson() && !flags.Request.Resume
	var s *session.Session
	for {
		if s == nil {
			var err error
			if s, err = cs.Sessions.Open(sig.Starting, session.ToRun, flags.Roots()...); err != nil {
				return err
			}
			leave := func() { _ = s.Close() } // there is no time to report an error
			sig.LastAct.Store(&leave)
			if err := cs.Sessions.Recordings.RequireOwnNode(s); err != nil {
				return errors.Join(err, s.Close())
			}
		}
		ending, err := cs.requestAndWatch(s, f, flags, demo)
		if sig.Ending.Load() {
			select {} // the process is exiting; err is only a symptom
		}
		if err == nil {
			err := f.Finish(s, ending, &cs.Sessions.Recordings)
			if demo != nil {
				err = errors.Join(err, demo.report(cs.Console, ending.Result))
			}
			return err
		}
		f.Settle()
		if err := f.Overdue(); err != nil {
			return errors.Join(err, s.Close())
		}
		if !s.IsGone(err) || !f.ContinueAfterLoss(s) {
			return errors.Join(err, s.Close())
		}
		f.NoteNodeGone()
		if s.OwnerPID == 0 {
			if err := session.Pause(sig.Starting, takeoverPause); err != nil {
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

// findResumed resolves the run that --resume names to a full id.
func (cs *Commands) findResumed(flags *request.Flags) error {
	if !flags.Request.Resume || client.IsRunID(flags.Request.RunID) {
		return nil
	}
	return cs.Sessions.VisitRun(session.ToInspect, flags.Request.RunID, func(_ context.Context, _ *session.Session, run string) error {
		flags.Request.RunID = run
		return nil
	})
}

// requestAndWatch sends the request and follows the run.
func (cs *Commands) requestAndWatch(s *session.Session, f *follow.Follower, flags *request.Flags, demo *demo) (follow.Ending, error) {
	cs.applyModelSetting(&flags.Request, s)
	if !f.IsAccepted() {
		cs.reportUnfinished(s, flags.Request.RunID)
	}
	f.AllowCancel()
	accepted, err := cs.sendRequest(s, flags)
	if err != nil {
		return follow.Ending{}, err
	}
	header := slices.Concat(cs.noteNoDirectory(flags, accepted), cs.headerLines(s, accepted))
	if demo != nil {
		header = append(header, demo.headerLines(s)...)
	}
	f.Accept(header)
	return f.Watch(s)
}

// reportedMax is how many unfinished runs are looked at for the hint about them.
const reportedMax = 20

// reportUnfinished prints how many runs are unfinished, if the node is in this process: such a node
// does not resume them by itself. A run whose end the index does not know yet is finished, and one that waits for a
// person is not continued by a resume.
func (cs *Commands) reportUnfinished(s *session.Session, own string) {
	if s.Node == nil || cs.Console.Quiet {
		return
	}
	open, err := s.Node.UnfinishedRuns(s.Context)
	if err != nil {
		return // a hint only
	}
	unfinished, parked, newest := 0, 0, ""
	for i, r := range open {
		if r.RunID == own {
			continue
		}
		if i < reportedMax {
			if now, err := s.State(s.Context, r.RunID); err == nil {
				r = now
			}
		}
		switch {
		case r.State == client.RunFinished:
		case r.State == client.RunParked:
			parked++
		default:
			unfinished++
			newest = cmp.Or(newest, r.RunID)
		}
	}
	say := func(text string) {
		for _, line := range cs.notPrinted(cs.Console.ErrStyle.Yellow(text)) {
			cs.Console.Say(line)
		}
	}
	switch {
	case unfinished == 1:
		say("1 unfinished run: " + s.Command("run --resume "+term.CleanLine(newest)) + " continues it")
	case unfinished > 1:
		say(fmt.Sprintf("%d unfinished runs: %s continues the newest", unfinished, s.Command("run --resume "+term.CleanLine(newest))))
	}
	if parked > 0 {
		say(console.CountOf(parked, "run") + " with questions for a person: " + s.Command("questions"))
	}
}

// headerLines returns the lines printed above a run: model, id, budget and notes; with -v the address of the node, too.
// What an earlier message of a chat has printed is not repeated.
func (cs *Commands) headerLines(s *session.Session, r client.RunAccepted) []string {
	st := cs.Console.ErrStyle
	lines := cs.notPrinted(st.Dim("model  ") + st.Bold(term.ModelName(r.Model)) + " (" + term.CleanLine(r.Why) + ")")
	if cs.Console.Verbose {
		lines = append(lines, cs.notPrinted(cs.natsLine(s))...)
	}
	if line := cs.httpLine(s); line != "" {
		lines = append(lines, cs.notPrinted(line)...)
	}
	budget := st.Dim("run    ") + term.CleanLine(r.RunID)
	if r.Existed {
		budget += cs.spentSoFar(s, r.RunID)
	}
	if r.Limit > 0 {
		budget += st.Dim("   budget ") + term.FormatTokens(r.Limit) + " tokens"
	}
	if r.LimitUSD > 0 {
		budget += ", " + term.FormatUSD(r.LimitUSD, false)
	}
	lines = append(lines, budget)
	if r.Estimated {
		lines = append(lines, cs.notPrinted(st.Dim("note   ")+"the model is behind a gateway: costs (~) are estimates by list prices")...)
	}
	notes := r.Notes
	if r.Continues != "" && (cs.Console.Verbose || cs.conversation != r.Conversation) { // each message of a chat continues it
		notes = append(slices.Clone(notes), fmt.Sprintf("it continues the conversation %s after %s", r.Conversation, r.Continues))
	}
	for _, n := range notes {
		lines = append(lines, cs.notPrinted(st.Dim("note   ")+term.CleanLine(n))...)
	}
	return lines
}

// noteNoDirectory says that a new run has no directory, and what offers one. A run that continues another may have its.
func (cs *Commands) noteNoDirectory(flags *request.Flags, r client.RunAccepted) []string {
	q := &flags.Request
	continues := q.Resume || r.Existed || q.Fork != "" || r.Continues != ""
	if q.Dir != "" || q.Agent != "" || continues {
		return nil
	}
	return cs.notPrinted(cs.Console.ErrStyle.Yellow("No directory was given; add --dir . for file tools and the shell"))
}

// spentSoFar says what a run that existed before has used of its budget; "": that is not known.
func (cs *Commands) spentSoFar(s *session.Session, run string) string {
	info, err := s.Get(s.Context, run)
	if err != nil || info.Result == nil {
		return "" // the bar below shows it
	}
	b := info.Result.Budget
	text := cs.Console.ErrStyle.Dim("   budget ") + term.FormatTokens(b.Used) + " of " + term.FormatTokens(b.Limit) + " tokens"
	if money := term.FormatMoney(info.Result.CostUSD, b.LimitUSD, b.ReservedUSD, info.Result.CostEstimated); money != "" {
		text += ", " + money
	}
	return text
}

// natsLine says at which server the events of the run can be watched.
func (cs *Commands) natsLine(s *session.Session) string {
	st := cs.Console.ErrStyle
	nats := st.Dim("nats   ") + term.CleanLine(s.Address)
	if s.OwnerPID > 0 {
		nats += fmt.Sprintf(" (node of process %d)", s.OwnerPID)
	}
	watch := cmp.Or(s.WatchCommand, "nats -s "+s.Address)
	if cs.Sessions.Conn.Context != "" && cs.Sessions.Conn.Servers == "" {
		watch = "nats --context " + cs.Sessions.Conn.Context
	}
	return nats + st.Dim("   watch: ") + term.CleanLine(watch) + " sub '" + s.Names().AllEvents() + "'"
}

// notPrinted returns a line, unless this process has printed it above an earlier run.
func (cs *Commands) notPrinted(line string) []string {
	if cs.printed[line] {
		return nil
	}
	if cs.printed == nil {
		cs.printed = map[string]bool{}
	}
	cs.printed[line] = true
	return []string{line}
}
