package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

const (
	drawPause  = 100 * time.Millisecond
	askPause   = 200 * time.Millisecond // between looks at whether a run is parked
	cancelWait = 5 * time.Second        // from a stop at the boundary to a stop now
	endWait    = 15 * time.Second       // from a stop now to giving up on a result
	watchAhead = 256
)

// errNoResult means that a stopped run did not publish its end in time.
var errNoResult = errors.New("the run did not end in time")

// ending is how following a run ended.
type ending struct {
	result event.Result
	parked bool // it waits for a person, and is not over
}

// follower shows one run, across all nodes that run it in turn.
type follower struct {
	console  *console
	run      string
	sig      *signals
	accepted bool
	lost     time.Time // when the node was lost, zero once it is back

	tree   term.Tree
	live   *term.Live // nil: plain lines
	seen   places
	dirty  bool
	drawn  time.Time
	asked  time.Time // last look at whether the run is parked
	person *person   // nil: no person can be asked

	journal *journalWatch
}

// item is one event on its way to the screen.
type item struct {
	event client.Event
	raw   []byte
}

func newFollower(a *console, run string, sig *signals) *follower {
	f := &follower{console: a, run: run, sig: sig, seen: places{}, journal: newJournalWatch(journalPatience, 0)}
	tty := term.Is(a.err, a.getenv) && a.getenv("NO_COLOR") == "" && a.color != "never"
	if tty && !a.quiet && !a.verbose && a.output != "stream-json" {
		f.live = &term.Live{Out: a.err, Size: func() (int, int) { return term.Size(a.err) }}
	}
	if tty && term.IsTTY(a.in) && !a.quiet {
		f.person = &person{console: a, answers: make(chan decision, 1)}
	}
	return f
}

// mayWait reports whether to continue after the node was lost.
func (f *follower) mayWait(s *seat) bool {
	if f.lost.IsZero() {
		f.lost = time.Now()
	}
	if s.joined > 0 {
		return true // the command connects to the next owner, or becomes it, at once
	}
	if s.host != nil && !f.accepted {
		return time.Since(f.lost) < JoinTimeout // its server is restarting
	}
	return f.accepted && (f.journal.down != nil || time.Since(f.lost) < takeoverTimeout)
}

// watch follows the run on one node until its end.
func (f *follower) watch(s *seat) (ending, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	events, done := make(chan item, watchAhead), make(chan error, 1)
	go func() {
		done <- s.Events(ctx, f.run, f.seen.cursor(), true, func(e client.Event, raw []byte) error {
			select {
			case events <- item{e, raw}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	news, err := f.journal.listen(ctx, s, f.run)
	if err != nil {
		return ending{}, err
	}
	stop := newStopper(f, s)
	defer stop.close()
	tick := time.NewTicker(drawPause)
	defer tick.Stop()
	for {
		select {
		case it := <-events:
			f.take(it)
		case err := <-done:
			for len(events) > 0 {
				f.take(<-events)
			}
			if err != nil {
				return ending{}, err
			}
			return f.result(s)
		case n := <-news:
			if text := f.journal.take(n, time.Now()); text != "" {
				f.note(text)
			}
		case <-tick.C:
			if err := f.journal.over(f.run, time.Now()); err != nil {
				return ending{}, err
			}
			if parked, err := f.look(s); parked || err != nil {
				return ending{f.parkedResult(s), true}, err
			}
		case <-stop.signal:
			if f.journal.down != nil {
				return ending{}, f.journal.interrupted(f.run, f.sig.code())
			}
			if err := stop.next(); err != nil {
				return ending{}, f.journal.untold(f.run, f.sig.code(), err)
			}
		case <-stop.timer:
			if err := stop.next(); err != nil {
				return f.gaveUp(s, err)
			}
		case d := <-f.person.given():
			if err := f.person.take(s, d); err != nil {
				return ending{}, err
			}
		}
	}
}

// result returns the result that the run published at its end, or the one that the node reports.
func (f *follower) result(s *seat) (ending, error) {
	if f.tree.Result != nil && f.tree.Result.Type != "" {
		return ending{result: *f.tree.Result}, nil
	}
	info, err := s.Get(s.ctx, f.run)
	if err != nil || info.Result == nil {
		return ending{}, errors.Join(err, errNoResult)
	}
	return ending{result: *info.Result}, nil
}

// gaveUp returns the result of a run that did not end although it was canceled.
func (f *follower) gaveUp(s *seat, cause error) (ending, error) {
	info, err := s.Get(s.ctx, f.run)
	if err != nil || info.Result == nil {
		return ending{}, errors.Join(cause, err)
	}
	r := *info.Result
	r.Reason, r.Partial, r.IsError = "canceled", true, true
	r.Subtype, r.Detail = event.Subtype(r.Reason), cause.Error()
	return ending{result: r}, nil
}

// take shows one event.
func (f *follower) take(it item) {
	if !f.seen.fresh(it.event) {
		return
	}
	f.tree.Take(it.event)
	if it.event.Seq > 0 {
		f.journal.heard(it.event, time.Now())
	}
	if text := f.journal.queued(it.event); text != "" {
		f.note(text)
	}
	f.dirty = true
	switch {
	case f.console.output == "stream-json":
		f.console.line(it.raw)
	case f.live == nil && !f.console.quiet && term.Important(it.event):
		f.console.say(term.PlainLine(f.console.errors, it.event, f.tree.Name(it.event.Agent)))
	}
}

// look draws the tree, and asks the person on behalf of agents that wait for an answer. It
// reports whether the run is parked and no person can be asked here.
func (f *follower) look(s *seat) (parked bool, err error) {
	if f.tree.Asking() > 0 && !f.tree.Busy() && time.Since(f.asked) >= askPause {
		f.asked = time.Now()
		if f.person != nil && !f.person.away {
			return false, f.person.ask(s, f)
		}
		info, err := s.Get(s.ctx, f.run)
		if err != nil {
			return false, err
		}
		if info.State == "parked" {
			return true, nil
		}
	}
	f.draw()
	return false, nil
}

// draw redraws the tree if something happened, and each second for the clock.
func (f *follower) draw() {
	if f.live == nil || f.person.asking() || !f.dirty && time.Since(f.drawn) < time.Second {
		return
	}
	f.dirty, f.drawn = false, time.Now()
	width, height := f.live.Size()
	if err := f.live.Draw(f.tree.Lines(f.console.errors, time.Now(), width-1, height-1)); err != nil {
		f.live = nil // the terminal is gone; the run is not
	}
}

// head prints the first lines.
func (f *follower) head(lines []string) {
	if f.console.quiet {
		return
	}
	for _, l := range lines {
		f.console.say(l)
	}
}

// note prints a note between events.
func (f *follower) note(text string) {
	text = f.console.errors.Yellow(text)
	if f.live == nil {
		f.console.say(text)
	} else if err := f.live.Above(text); err != nil {
		f.live = nil
	}
}

// rest lets the tree stand as it is.
func (f *follower) rest() {
	f.dirty = true
	f.draw()
	if f.live != nil {
		f.live.Leave()
	}
}

// parkedResult is how the run stands.
func (f *follower) parkedResult(s *seat) event.Result {
	info, err := s.Get(s.ctx, f.run)
	if err != nil || info.Result == nil {
		return event.Result{Type: "result", Run: f.run, Reason: "needs_human", Subtype: "error_needs_human", IsError: true, Partial: true}
	}
	return *info.Result
}

// finish prints the only result, and leaves the node to the runs of others.
func (f *follower) finish(s *seat, end ending, recordings *tapeFlags) error {
	f.rest()
	hintParked(f.console, f.run, end)
	err := f.console.printResult(end.result)
	recordings.left(f.console, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	interrupted := f.sig.first
	go func() {
		select {
		case <-interrupted:
			cancel() // an interrupted command does not stay for the runs of others
		case <-ctx.Done():
		}
	}()
	if closing := s.leave(ctx, f.run); closing != nil {
		f.console.say(term.Line("closing the node: " + closing.Error()))
	}
	if err != nil {
		return err
	}
	return ended(exitCode(end.result.Reason, f.sig.terminated.Load()))
}

// hintParked says how to continue a run that waits for a person.
func hintParked(a *console, run string, end ending) {
	if !end.parked || a.quiet {
		return
	}
	for _, m := range end.result.Agents {
		if m.Query != nil {
			a.say(a.errors.Yellow(fmt.Sprintf("%s asks: %s", term.Line(m.Name), term.Line(m.Query.Question))))
			a.say(fmt.Sprintf("answer it: troupe answer %s %s approve|deny|skip|TEXT", run, term.Line(m.Query.Query)))
		}
	}
	a.say("then continue: troupe run --resume " + run)
}
