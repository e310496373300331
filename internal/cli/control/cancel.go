package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Cancel makes the command cancel.
func (cs *Commands) Cancel() *cobra.Command {
	var r client.CancelRequest
	var wait time.Duration
	var by string
	c := &cobra.Command{
		Use: "cancel RUN", Args: command.Exactly("RUN"),
		Short: "Stop a run and wait until all its agents have stopped",
		Long: `Stop a run at its next safe boundary: running model calls and tools finish first.
--now aborts them. The run ends with a result either way.

A stopped agent starts no further call. If some agents have not stopped within --wait,
the command fails and lists how many are left on which node, and which nodes are
unreachable. An unreachable node starts nothing once its lease has expired.`,
		Example:     "  troupe cancel 01k9z3\n  troupe cancel --now --wait 10s 01k9z3\n  troupe cancel 01k9z3 --agent root-1-0",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("by") && strings.TrimSpace(by) == "" {
				return exit.UsageError("write --by NAME, or leave it out: then the name of your account counts", "--by is empty")
			}
			r.Why, r.By = event.CanceledByPerson, cmp.Or(cs.Sessions.Conn.As, by, request.UserName())
			// If no node is running, the command starts one: only an active run can end.
			asked := cancelRequest{CancelRequest: r, wait: wait}
			do := func(ctx context.Context, s *session.Session, run string) error {
				asked.RunID = run
				return cs.cancelRun(ctx, s, &asked)
			}
			err := cs.Sessions.VisitRun(session.ToRun, args[0], do)
			if asked.sent && client.Lost(err) { // the run ended, and the process of its node with it
				err = cs.Sessions.VisitRun(session.ToRun, asked.RunID, do)
			}
			return err
		},
	}
	c.Flags().BoolVar(&r.Now, "now", false, "abort running model calls and tools")
	c.Flags().StringVar(&r.Agent, "agent", "", "stop only this agent and its descendants: "+command.AgentFlag)
	c.Flags().StringVar(&by, "by", "", "name with which the cancel is recorded (default: the name of your account; with --as that name)")
	c.Flags().DurationVar(&wait, "wait", cancelTimeout,
		"how long to wait for the end; 0 only sends the request and reports the agents that have stopped already")
	return c
}

// cancelReport is what cancel prints.
type cancelReport struct {
	Run     string   `json:"run_id"`
	Agent   string   `json:"agent,omitempty"`
	Stopped []string `json:"stopped"`
	Orphans []string `json:"orphans"` // that have not stopped
	Already bool     `json:"already_finished"`
	// Account is the acknowledgement, where the end was not waited for.
	Account *client.CancelReply `json:"account,omitempty"`
	Result  *event.Result       `json:"result,omitempty"`
}

// cancelTimeout is how long a cancel waits for the end of the run; tools may take a minute.
const cancelTimeout = 90 * time.Second

// cancelNoteAfter is how long a cancel waits before it says what it waits for.
const cancelNoteAfter = 2 * time.Second

// accountTimeout is how long a node may take to answer.
const accountTimeout = 10 * time.Second

// cancelRequest is a cancel that may outlive the node that accepted it.
type cancelRequest struct {
	client.CancelRequest
	wait  time.Duration
	sent  bool     // it is in a log, or the node that accepted it is gone and did not answer
	asked bool     // it is in a log
	live  []string // agents before it
}

func (cs *Commands) cancelRun(ctx context.Context, s *session.Session, r *cancelRequest) error {
	if s.Node != nil && r.wait <= 0 { // no other process ends the run
		r.wait = cancelTimeout
	}
	began := time.Now()
	ctx, end := context.WithTimeout(ctx, max(r.wait, accountTimeout)) // a node must be asked, however short the wait
	defer end()
	before, err := s.Get(ctx, r.RunID)
	if err != nil {
		return err
	}
	if before.State == client.RunFinished {
		return cs.printCanceled(cancelReport{Run: r.RunID, Agent: r.Agent, Already: !r.endedRun(before.Result), Stopped: stoppedAgents(r.live, before.Result), Result: before.Result})
	}
	if r.Agent, err = s.FindAgent(ctx, r.RunID, r.Agent); err != nil {
		return err
	}
	if !r.asked {
		r.live = liveAgents(before.Result, r.Agent)
	}
	if r.WaitMS = min(r.wait, client.CancelWaitMax).Milliseconds(); r.wait < time.Millisecond || s.Node != nil {
		r.WaitMS = -1 // of a node that is not ready yet
	}
	r.sent = true
	if !r.Now && r.wait > 0 { // calls in progress may take long
		note := time.AfterFunc(cancelNoteAfter, func() {
			cs.sayAwaited(ctx, s, r)
		})
		defer note.Stop()
	}
	account, err := s.Cancel(ctx, r.CancelRequest)
	if err != nil {
		return err
	}
	r.asked = true
	if r.wait <= 0 {
		return cs.printCanceled(cancelReport{Run: r.RunID, Agent: r.Agent, Account: &account})
	}
	if s.Node != nil {
		if err := r.stopOnOwnNode(ctx, s); err != nil {
			return err
		}
	}
	for {
		info, err := r.lookForEnd(ctx, s, before)
		switch {
		case errors.Is(err, context.DeadlineExceeded), err == nil && info.State != client.RunFinished && time.Since(began) >= r.wait:
			return &exit.Failure{Code: exit.Failed, Err: fmt.Errorf("%s did not stop within %s: %s", r.RunID, r.wait, r.stoppedText(s, awaitedText(before.Result, r.Agent))),
				Hint: "--now aborts calls in progress; an agent whose node is gone stops when another node takes it over: run cancel again for a new count"}
		case err != nil:
			return err
		}
		left := liveAgents(info.Result, r.Agent)
		before = info
		if info.State == client.RunFinished || r.Agent != "" && len(left) == 0 {
			return cs.printCanceled(cancelReport{Run: r.RunID, Agent: r.Agent, Stopped: stoppedAgents(r.live, info.Result), Orphans: left, Result: info.Result})
		}
		if err := session.Pause(ctx, session.AskPause); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// awaitedCallsShown is how many calls in progress a cancel names.
const awaitedCallsShown = 5

// sayAwaited says what a cancel waits for: the calls that are in progress, by the events of the run.
func (cs *Commands) sayAwaited(ctx context.Context, s *session.Session, r *cancelRequest) {
	who := r.RunID
	if r.Agent != "" {
		who = r.Agent + " of " + r.RunID
	}
	cs.Console.Say("waiting until " + who + " is at a safe boundary: calls in progress end first (--now aborts them)")
	var t term.Tree
	err := s.Events(ctx, r.RunID, nil, false, func(e client.Event, _ []byte) error {
		t.AddEvent(e)
		return nil
	})
	if err != nil {
		return // the cancel itself reports what keeps it from the node
	}
	calls := t.CallsInProgress(r.Agent)
	for i, c := range calls {
		if i == awaitedCallsShown {
			cs.Console.Say(fmt.Sprintf("  and %s more", term.FormatCount(len(calls)-i, "call")))
			break
		}
		cs.Console.Say("  " + c)
	}
}

// lookForEnd returns the run, with its agents once it has ended. Until then the agents are those of
// before, unless one agent is canceled.
func (r *cancelRequest) lookForEnd(ctx context.Context, s *session.Session, before client.RunInfo) (client.RunInfo, error) {
	info, err := s.State(ctx, r.RunID)
	if err == nil && (info.State == client.RunFinished || r.Agent != "") {
		return s.Get(ctx, r.RunID)
	}
	info.Result = before.Result
	return info, err
}

// endedRun reports whether this cancel ended a finished run, as far as that is known if the
// answer was lost.
func (r *cancelRequest) endedRun(result *event.Result) bool {
	return r.asked || r.sent && result != nil && result.Cancel != nil
}

// stopOnOwnNode resumes a run on the node of this process, after the cancel is in its log, and
// waits until its agents have stopped: the cancel then ends work whose end the supervisor
// will not receive. A damaged run may have ended with the cancel.
func (r *cancelRequest) stopOnOwnNode(ctx context.Context, s *session.Session) error {
	if info, err := s.State(ctx, r.RunID); err == nil && info.State == client.RunFinished {
		return nil
	}
	if _, err := s.Run(ctx, client.RunRequest{RunID: r.RunID, Resume: true}); err != nil {
		return err
	}
	request := r.CancelRequest
	request.WaitMS = min(r.wait, client.CancelWaitMax).Milliseconds()
	_, err := s.Cancel(ctx, request)
	if known := (*client.Error)(nil); errors.As(err, &known) && known.Code == client.CodeConflict || errors.Is(err, context.DeadlineExceeded) {
		return nil // it has ended, or --wait is over
	}
	return err
}

// stoppedText asks which agents have stopped, once the time to wait is over; known is what was
// known before.
func (r *cancelRequest) stoppedText(s *session.Session, known string) string {
	ctx, end := context.WithTimeout(context.Background(), accountTimeout)
	defer end()
	request := r.CancelRequest
	request.WaitMS = -1
	if reply, err := s.Cancel(ctx, request); err == nil {
		return reply.Text
	}
	return known
}

// liveAgents returns the agents, at or below one agent, that have not finished.
func liveAgents(r *event.Result, below string) []string {
	ids := []string{}
	for _, m := range session.AgentResults(r) {
		under := below == "" || string(m.ID) == below || m.ID.IsBelow(spec.ID(below))
		if m.Phase != "done" && under {
			ids = append(ids, string(m.ID))
		}
	}
	return ids
}

// awaitedText names the agents that have not stopped, and the node that last reported each.
func awaitedText(r *event.Result, below string) string {
	left := liveAgents(r, below)
	text := fmt.Sprintf("%d have not stopped yet", len(left))
	for i, m := range slices.DeleteFunc(slices.Clone(session.AgentResults(r)), func(m event.AgentResult) bool { return !slices.Contains(left, string(m.ID)) }) {
		if i == awaitedShown {
			return text + ", …"
		}
		text += fmt.Sprintf(", %s on %s", m.ID, cmp.Or(m.Node, "a node that is not known"))
	}
	return text
}

// awaitedShown is how many of them are named.
const awaitedShown = 8

// stoppedAgents are those that were alive and no longer are.
func stoppedAgents(before []string, r *event.Result) []string {
	ids := []string{}
	for _, id := range before {
		for _, m := range session.AgentResults(r) {
			if string(m.ID) == id && m.Phase == "done" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (cs *Commands) printCanceled(c cancelReport) error {
	if c.Stopped == nil {
		c.Stopped = []string{}
	}
	if c.Orphans == nil {
		c.Orphans = []string{}
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(c)
	}
	if c.Account != nil {
		return cs.Console.Print(term.CleanLine(c.Account.Text))
	}
	if c.Already {
		return cs.Console.Print(fmt.Sprintf("run %s had ended before: %s", c.Run, term.FormatReason(c.Result.Reason)))
	}
	text := fmt.Sprintf("%d of %d stopped, %d orphans", len(c.Stopped), len(c.Stopped)+len(c.Orphans), len(c.Orphans))
	if account := c.Result; c.Agent == "" && account != nil && account.Cancel != nil {
		text = fmt.Sprintf("%s (%d ms)", account.Cancel.Text, account.Cancel.TookMS)
	}
	for _, m := range session.AgentResults(c.Result) {
		for _, id := range c.Stopped {
			if string(m.ID) == id {
				text += fmt.Sprintf("\n  %s  %s  %s", term.CleanLine(id), term.CleanLine(m.Name), term.FormatReason(m.Reason))
			}
		}
	}
	return cs.Console.Print(text)
}
