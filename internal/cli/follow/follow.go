// Package follow shows one run until its end, asks the person at the terminal, and stops the
// run after a signal.
package follow

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

const (
	RedrawInterval = 100 * time.Millisecond
	cancelWait     = 5 * time.Second  // from a stop at the boundary to a stop now
	endWait        = 15 * time.Second // from a stop now to giving up on a result
	EventBuffer    = 256
	// takeoverTimeout is how long a node elsewhere may be gone in the middle of a run.
	takeoverTimeout = 60 * time.Second
)

var (
	// errStillRunning means that a stopped run did not publish its end in time.
	errStillRunning = errors.New("the run did not end in time")
	// errNoResult means that the events of a run ended, and the node has no result of it.
	errNoResult = errors.New("the events of the run ended, and the node has no result of it")
)

// Ending is how following a run ended.
type Ending struct {
	Result event.Result
	parked bool // it waits for a person, and is not over
}

// Follower shows one run, across all nodes that run it in turn.
type Follower struct {
	console  *console.Console
	run      string
	sig      *interrupt.Signals
	accepted bool
	lost     time.Time // when the node was lost, zero once it is back

	tree      term.Tree
	live      *term.LiveRegion // nil: plain lines
	positions client.Positions
	dirty     bool
	drawn     time.Time
	asked     time.Time     // last look at whether the run is parked
	person    *terminalUser // nil: no person can be asked

	logs *logWatch

	earlier earlierEvents
}

// eventItem is one event on its way to the screen.
type eventItem struct {
	event client.Event
	raw   []byte
}

// New makes a follower of a run whose log may be unwritable for patience, with the
// soft time limit of the run; 0 is the default.
func New(a *console.Console, run string, sig *interrupt.Signals, patience, softLimit time.Duration) *Follower {
	f := &Follower{console: a, run: run, sig: sig, positions: client.Positions{}, logs: newLogWatch(patience, softLimit)}
	tty := term.CanDraw(a.Err, a.Getenv)
	if tty && !a.Quiet && !a.Verbose && a.Output != "stream-json" {
		f.live = &term.LiveRegion{Out: a.Err, Size: func() (int, int) { return term.Size(a.Err) }}
	}
	if tty && term.IsTTY(a.In) && !a.Quiet {
		f.person = newTerminalUser(a)
		restore := f.person.restoreTerminal
		sig.Terminal.Store(&restore)
	}
	return f
}

// NewObserver makes a follower that neither stops the run nor asks anybody.
func NewObserver(a *console.Console, run string) *Follower {
	f := New(a, run, &interrupt.Signals{}, LogPatience, 0)
	f.person = nil
	return f
}

// HasPerson reports whether a person at this terminal can be asked.
func (f *Follower) HasPerson() bool { return f.person != nil }

// IsAccepted reports whether a node has accepted the run.
func (f *Follower) IsAccepted() bool { return f.accepted }

// AllowCancel makes a signal cancel the run, instead of the start.
func (f *Follower) AllowCancel() { f.sig.RunBegun.Store(true) }

// Accept records that a node has accepted the run, and prints the lines before it once.
func (f *Follower) Accept(header []string) {
	if !f.accepted {
		f.PrintHeader(header)
	}
	f.accepted, f.lost = true, time.Time{}
}

// Overdue returns an error once the run has been unable to write its log for too long.
func (f *Follower) Overdue() error { return f.logs.overdue(f.run, time.Now()) }

// NoteNodeGone tells the user that the follower waits for the next node.
func (f *Follower) NoteNodeGone() {
	if f.accepted && f.logs.down == nil {
		f.note("the node is gone; waiting for another one")
	}
}

// ContinueAfterLoss reports whether to continue after the node was lost. The first call starts the time
// within which another node must take over.
func (f *Follower) ContinueAfterLoss(s *session.Session) bool {
	if f.lost.IsZero() {
		f.lost = time.Now()
	}
	if s.OwnerPID > 0 {
		return true // the command connects to the next owner, or becomes it, at once
	}
	if s.Node != nil && !f.accepted {
		return time.Since(f.lost) < session.JoinTimeout // its server is restarting
	}
	return f.accepted && (f.logs.down != nil || time.Since(f.lost) < takeoverTimeout)
}

// Watch follows the run on one node until its end.
func (f *Follower) Watch(s *session.Session) (Ending, error) {
	f.earlier.command = s.Command("events " + f.run)
	ctx, cancel := context.WithCancel(s.Context)
	defer cancel()
	events, done := make(chan eventItem, EventBuffer), make(chan error, 1)
	go func() {
		done <- s.Events(ctx, f.run, f.positions.Cursor(), true, func(e client.Event, raw []byte) error {
			select {
			case events <- eventItem{e, raw}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	news, err := f.logs.listen(ctx, s, f.run)
	if err != nil {
		return Ending{}, err
	}
	stop := newStopper(f, s)
	defer stop.close()
	defer f.person.withdraw()
	tick := time.NewTicker(RedrawInterval)
	defer tick.Stop()
	for {
		select {
		case it := <-events:
			f.showEvent(it)
		case err := <-done:
			for len(events) > 0 {
				f.showEvent(<-events)
			}
			if err != nil {
				return Ending{}, err
			}
			return f.finalResult(s)
		case n := <-news:
			if text := f.logs.applyReport(n, time.Now()); text != "" {
				f.note(text)
			}
		case <-tick.C:
			parked, err := f.checkOften(s)
			if err != nil {
				return Ending{}, err
			}
			if parked {
				r, still, err := f.parkedResult(s)
				if still || err != nil {
					return Ending{Result: r, parked: true}, err
				}
			}
		case <-stop.signal:
			if f.logs.down != nil {
				return Ending{}, f.logs.interruptedError(f.run, f.sig.ExitCode())
			}
			if err := stop.escalate(); err != nil {
				return Ending{}, f.logs.stopError(f.run, f.sig.ExitCode(), err)
			}
		case <-stop.timer:
			if err := stop.escalate(); err != nil {
				return f.abandonedResult(s, err)
			}
		case in := <-f.person.input():
			if err := f.person.takeInput(s, in); err != nil {
				return Ending{}, err
			}
		}
	}
}

// finalResult returns the result that the run published at its end, or the one that the node reports.
func (f *Follower) finalResult(s *session.Session) (Ending, error) {
	if f.tree.Result != nil && f.tree.Result.Type != "" {
		return Ending{Result: *f.tree.Result}, nil
	}
	info, err := s.Get(s.Context, f.run)
	if err != nil || info.Result == nil {
		return Ending{}, errors.Join(err, errNoResult)
	}
	return Ending{Result: *info.Result}, nil
}

// abandonedResult returns the result of a run that did not end although it was canceled.
func (f *Follower) abandonedResult(s *session.Session, cause error) (Ending, error) {
	info, err := s.Get(s.Context, f.run)
	if err != nil || info.Result == nil {
		return Ending{}, errors.Join(cause, err)
	}
	r := *info.Result
	r.Reason, r.Partial, r.IsError = spec.ByCancel, true, true
	r.Subtype, r.Detail = event.Subtype(r.Reason), cause.Error()
	return Ending{Result: r}, nil
}

// showEvent notes an event that was not seen yet, in the tree and in the position, and shows it.
func (f *Follower) showEvent(it eventItem) {
	if !f.positions.Advance(it.event) {
		return
	}
	f.tree.AddEvent(it.event)
	if it.event.Seq > 0 {
		if text := f.logs.recordEvent(it.event, time.Now()); text != "" {
			f.note(text)
		}
	}
	if text := f.logs.queueNotice(it.event); text != "" {
		f.note(text)
	}
	f.dirty = true
	f.person.noteEvent(it.event)
	switch {
	case f.console.Output == "stream-json":
		f.person.printAbove(func() { f.console.PrintJSONLine(it.raw) })
	case f.live == nil && !f.console.Quiet && term.IsImportant(it.event) && !f.earlier.take(it.event):
		f.person.printAbove(func() {
			f.printEarlier()
			f.console.Say(term.PlainLine(f.console.ErrStyle, it.event, f.tree.AgentName(it.event.Agent)))
		})
	}
}

// checkOften runs every RedrawInterval. It reports whether the run is parked and this terminal cannot ask a person.
func (f *Follower) checkOften(s *session.Session) (parked bool, err error) {
	if err := f.logs.overdue(f.run, time.Now()); err != nil {
		return false, err
	}
	if err := f.person.takeKey(s); err != nil {
		return false, err
	}
	return f.checkParked(s)
}

// checkParked asks the person on behalf of agents that wait for an answer, and draws the tree if no one has to be
// asked. It reports whether the run is parked and no person can be asked here.
func (f *Follower) checkParked(s *session.Session) (parked bool, err error) {
	if f.tree.CountAsking() > 0 && !f.tree.IsToolRunning() && time.Since(f.asked) >= session.AskPause {
		f.asked = time.Now()
		if f.person != nil && !f.person.away {
			return false, f.person.askNext(s, f)
		}
		info, err := s.State(s.Context, f.run)
		if err != nil {
			return false, err
		}
		if info.State == client.RunParked {
			return true, nil
		}
	}
	f.redraw()
	return false, nil
}

// redraw redraws the tree if something happened, and each second for the clock.
func (f *Follower) redraw() {
	if f.live == nil || f.person.isAsking() || !f.dirty && time.Since(f.drawn) < time.Second {
		return
	}
	f.dirty, f.drawn = false, time.Now()
	width, height := f.live.Size()
	if err := f.live.Draw(f.tree.Lines(f.console.ErrStyle, time.Now(), width-1, height-1)); err != nil {
		f.live = nil // the terminal is gone; the run is not
	}
}

// PrintHeader prints the first lines.
func (f *Follower) PrintHeader(lines []string) {
	if f.console.Quiet {
		return
	}
	for _, l := range lines {
		f.console.Say(l)
	}
}

// note prints a note between events.
func (f *Follower) note(text string) {
	text = f.console.ErrStyle.Yellow(text)
	f.person.printAbove(func() {
		if f.live == nil {
			f.console.Say(text)
		} else if err := f.live.WriteAbove(text); err != nil {
			f.live = nil
		}
	})
}

// Settle redraws the tree a last time and leaves it on the screen.
func (f *Follower) Settle() {
	f.printEarlier()
	f.dirty = true
	f.redraw()
	if f.live != nil {
		f.live.KeepLines()
	}
}

// parkedResult returns the state of a run that waits for a person, in the form of a result; still is false if the run
// works again because its question has expired or was answered elsewhere.
func (f *Follower) parkedResult(s *session.Session) (r event.Result, still bool, err error) {
	info, err := s.Get(s.Context, f.run)
	if err != nil || info.Result == nil {
		r = event.Result{Type: "result", Run: f.run, Reason: spec.NeedsHuman, IsError: true, Partial: true}
		r.Subtype = event.Subtype(r.Reason)
		return r, true, err
	}
	return *info.Result, info.State == client.RunParked, nil
}

// Finish prints the result, waits at most 5 s for the other runs of the node in this process and for hooks, closes
// the node, and returns the exit code as an error.
func (f *Follower) Finish(s *session.Session, end Ending, recordings *session.Recordings) error {
	f.Settle()
	f.PrintAnswerHint(s, end)
	err := f.PrintResult(s, end)
	recordings.ReportUnplayed(f.console, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	interrupted := f.sig.First
	go func() {
		select {
		case <-interrupted:
			cancel() // an interrupted command does not stay for the runs of others
		case <-ctx.Done():
		}
	}()
	if closing := s.Leave(ctx, f.run); closing != nil {
		f.console.Say(term.CleanLine("closing the node: " + closing.Error()))
	}
	if err != nil {
		return err
	}
	return exit.WithCode(exit.ForReason(end.Result.Reason, f.sig.Terminated.Load()))
}

// PrintResult prints the result of the run. On a screen it also says which limit has ended the run, and by how much
// it was short. Of a canceled run it prints what the agent has said, and names the tools whose results it leaves out.
func (f *Follower) PrintResult(s *session.Session, end Ending) error {
	r := end.Result
	if isText := f.console.Output == "" || f.console.Output == "text"; isText && end.parked {
		r.Detail = "" // the question, which PrintAnswerHint has shown
	}
	isShort := r.Reason == spec.TokenBudget || r.Reason == spec.CostBudget || r.Reason == spec.MaxToolCalls
	if (f.console.Output == "" || f.console.Output == "text") && isShort && r.Detail == "" {
		r.Detail = f.tree.Shortage()
	}
	if isText := f.console.Output == "" || f.console.Output == "text"; !isText || !slices.Contains(console.CanceledReasons, r.Reason) {
		return f.console.PrintResult(r, s)
	}
	said, left := splitCanceled(r.Text)
	r.Text = said
	err := f.console.PrintResult(r, s)
	if left != "" {
		f.console.Say(f.console.ErrStyle.Dim("not printed: " + left + "; " + s.Command("result "+f.run) + " prints it, " + s.Command("transcript "+f.run) + " shows all"))
	}
	return err
}
