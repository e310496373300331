package follow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// LogPatience is how long a run that is followed may be unable to write its
	// log until the command gives up: --log-patience.
	LogPatience = 2 * time.Minute
	// reportInterval is how often the nodes are asked whether they can write their logs.
	reportInterval = time.Second
	// lateEventGrace is how long after a report of an outage an event of its node may still be one of before the outage.
	lateEventGrace = 2 * time.Second
	// reportBuffer is how many answers may wait to be shown.
	reportBuffer = 16
)

// logWatch tracks whether the node of a run can write its logs. A run whose log
// cannot be written publishes nothing, and no entry in the log can end it: so the command
// enforces its time limits.
type logWatch struct {
	patience time.Duration
	hard     time.Duration // the hard time limit of an agent: working time

	down  *client.LogHealth // nil: as far as is known, the logs can be written
	node  string            // that reported it
	since time.Time         // when the report arrived
	low   bool              // a node reported little room
	begun atomic.Bool       // an agent of the run published an event: the run is not queued
	place int               // in the queue, as last reported
	// resume is the command that continues the run; "": no node was asked yet.
	resume string
}

// logReport is a report of a node.
type logReport struct {
	node string
	info *client.LogHealth // nil: the node can write
	// place is the run's position in the queue of its node; it is independent of its logs.
	place int
}

// newLogWatch watches for a run with a soft time limit; 0 is the default.
func newLogWatch(patience, softLimit time.Duration) *logWatch {
	hard := int64(spec.HardDefaultMS)
	if softLimit > 0 {
		hard = spec.HardLimitMS(softLimit.Milliseconds())
	}
	return &logWatch{patience: patience, hard: time.Duration(hard) * time.Millisecond}
}

// listen returns the reports of the nodes until ctx ends.
func (w *logWatch) listen(ctx context.Context, s *session.Session, run string) (<-chan logReport, error) {
	w.resume = s.Command("run --resume " + run)
	news := make(chan logReport, reportBuffer)
	give := func(n logReport) {
		select {
		case news <- n:
		default: // the next answer repeats it
		}
	}
	stop, err := s.WatchLogHealth(func(node string, info *client.LogHealth) { give(logReport{node: node, info: info}) })
	if err != nil {
		return nil, err
	}
	go func() {
		defer stop()
		for session.Pause(ctx, reportInterval) == nil {
			if !w.begun.Load() {
				if info, err := s.State(ctx, run); err == nil && info.Position > 0 {
					give(logReport{place: info.Position})
				}
			}
			list, err := s.Nodes(ctx)
			if err != nil {
				continue // the follower of the events notices that
			}
			for _, n := range list {
				if n.Proof != nil { // the node that answers describes itself
					give(logReport{node: n.Name, info: n.LogHealth})
				}
			}
		}
	}()
	return news, nil
}

// applyReport takes in a report of a node, and returns the line to show; "" shows nothing.
func (w *logWatch) applyReport(n logReport, now time.Time) string {
	switch {
	case n.place > 0 && w.place != 0:
		return ""
	case n.place > 0:
		w.place = n.place
		return fmt.Sprintf("the run is queued at position %d; it begins when earlier runs have ended", n.place)
	case n.info != nil && n.info.Low && w.down == nil:
		if w.low {
			return ""
		}
		w.low = true
		return n.info.Why + ": " + n.info.Remedy
	case n.info != nil && !n.info.Low && w.down == nil:
		w.down, w.node, w.since = n.info, n.node, now
		return fmt.Sprintf("%s; the run waits, at most %s: %s", n.info.Why, w.patience, n.info.Remedy)
	case n.info != nil && !n.info.Low:
		w.down = n.info
	case w.down != nil && n.node == w.node:
		return w.endOutage(now)
	}
	return ""
}

// endOutage records that the node can write again, and returns the line to show.
func (w *logWatch) endOutage(now time.Time) string {
	w.down = nil
	return fmt.Sprintf("the logs can be written again after %s: the run continues", now.Sub(w.since).Round(100*time.Millisecond))
}

// recordEvent records that the run published an event that is in its log, and returns the line to
// show; "" shows nothing. An event of the node that could not write may arrive before its report
// that it can. If another node cannot write, that does not affect this run.
func (w *logWatch) recordEvent(e client.Event, now time.Time) string {
	if e.Agent != mailbox.Super { // its supervisor publishes events before the run is queued
		w.begun.Store(true)
	}
	switch {
	case w.down == nil || now.Sub(w.since) <= lateEventGrace:
		return ""
	case e.Node == w.node:
		return w.endOutage(now)
	}
	w.down = nil
	return ""
}

// queueNotice returns the line to show when a node reports that the run is queued; "" shows nothing.
func (w *logWatch) queueNotice(e client.Event) string {
	var q event.RunQueued
	if e.Kind != event.KindRunQueued || json.Unmarshal(e.Data, &q) != nil {
		return ""
	}
	return w.applyReport(logReport{place: q.Position}, time.Now())
}

// overdue fails once the run has waited for too long: for patience, or as long as an agent may work. The
// wait is measured from the report of the outage, because a run that waited for a person before has not
// used up its working time.
func (w *logWatch) overdue(run string, now time.Time) error {
	if w.down == nil {
		return nil
	}
	waited := now.Sub(w.since)
	if waited < min(w.patience, w.hard) {
		return nil
	}
	return &exit.Failure{Code: exit.NoNode, Err: fmt.Errorf("%w: %s; run %s waits for %s", errUnwritable, w.down.Why, run, waited.Round(time.Second)), Hint: w.remedyText(run)}
}

// errUnwritable means that the log of the run cannot be written.
var errUnwritable = errors.New("the log of the run cannot be written")

func (w *logWatch) remedyText(run string) string {
	return w.down.Remedy + ", then `" + cmp.Or(w.resume, "troupe run --resume "+run) + "` continues it"
}

// stopError returns the error of a stop that did not reach the run.
func (w *logWatch) stopError(run string, code int, err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == client.CodeLogs {
		w.down = &client.LogHealth{Why: refused.Text, Remedy: refused.Hint}
		return w.interruptedError(run, code)
	}
	return err
}

// interruptedError ends the command while the node cannot record a stop of the run.
func (w *logWatch) interruptedError(run string, code int) error {
	return &exit.Failure{Code: code, Err: fmt.Errorf("interrupted; the run cannot be canceled while its log cannot be written: %s", w.down.Why), Hint: w.remedyText(run)}
}
