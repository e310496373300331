package follow

import (
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
	// JournalPatience is how long a run that is followed may be unable to write its
	// log until the command gives up: --journal-patience.
	JournalPatience = 2 * time.Minute
	// A run that is quiet for journalQuiet has its node asked whether it can write, and
	// again every journalPause.
	journalQuiet = 2 * time.Second
	journalPause = time.Second
	// journalAhead is how many answers may wait to be shown.
	journalAhead = 16
)

// journalWatch tracks whether the node of a run can write its logs. A run whose log
// cannot be written publishes nothing, and no entry in the log can end it: so the command
// enforces its time limits.
type journalWatch struct {
	patience time.Duration
	hard     time.Duration // of the run's wall clock
	accepted time.Time     // when the run was accepted

	down  *client.JournalInfo // nil: as far as is known, the logs can be written
	node  string              // that reported it
	since time.Time           // when the report arrived
	moved time.Time           // when the last entry of the run arrived
	low   bool                // a node reported little room
	begun atomic.Bool         // an agent of the run published an event: the run is not queued
	place int                 // in the queue, as last reported
}

// journalReport is a report of a node.
type journalReport struct {
	node string
	info *client.JournalInfo // nil: the node can write
	// place is the run's position in the queue of its node; it is independent of the journal.
	place int
}

// newJournalWatch watches for a run with a soft time limit; 0 is the default.
func newJournalWatch(patience time.Duration, softMS int64) *journalWatch {
	hard := int64(spec.HardDefaultMS)
	if softMS > 0 {
		hard = spec.HardLimitMS(softMS)
	}
	return &journalWatch{patience: patience, hard: time.Duration(hard) * time.Millisecond}
}

// listen returns the reports of the nodes until ctx ends.
func (j *journalWatch) listen(ctx context.Context, s *session.Session, run string) (<-chan journalReport, error) {
	news := make(chan journalReport, journalAhead)
	give := func(n journalReport) {
		select {
		case news <- n:
		default: // the next answer repeats it
		}
	}
	stop, err := s.WatchJournals(func(node string, info *client.JournalInfo) { give(journalReport{node: node, info: info}) })
	if err != nil {
		return nil, err
	}
	go func() {
		defer stop()
		for session.Pause(ctx, journalPause) == nil {
			if !j.begun.Load() {
				if info, err := s.State(ctx, run); err == nil && info.Position > 0 {
					give(journalReport{place: info.Position})
				}
			}
			list, err := s.Nodes(ctx)
			if err != nil {
				continue // the follower of the events notices that
			}
			for _, n := range list {
				if n.Proof != nil { // the node that answers describes itself
					give(journalReport{node: n.Name, info: n.Journal})
				}
			}
		}
	}()
	return news, nil
}

// process processes a report of a node, and returns the line to show; "" shows nothing.
func (j *journalWatch) process(n journalReport, now time.Time) string {
	switch {
	case n.place > 0 && j.place != 0:
		return ""
	case n.place > 0:
		j.place = n.place
		return fmt.Sprintf("the run is queued at place %d: it begins when others have ended (troupe list shows its place)", n.place)
	case n.info != nil && n.info.Low && j.down == nil:
		if j.low {
			return ""
		}
		j.low = true
		return n.info.Why + ": " + n.info.Remedy
	case n.info != nil && !n.info.Low && j.down == nil:
		j.down, j.node, j.since = n.info, n.node, now
		return fmt.Sprintf("%s; the run waits, at most %s: %s", n.info.Why, j.patience, n.info.Remedy)
	case n.info != nil && !n.info.Low:
		j.down = n.info
	case j.down != nil && n.node == j.node:
		return j.recovered(now)
	}
	return ""
}

// recovered notes that the node can write again, and returns the line to show.
func (j *journalWatch) recovered(now time.Time) string {
	j.down = nil
	return fmt.Sprintf("the logs can be written again after %s: the run continues", now.Sub(j.since).Round(100*time.Millisecond))
}

// recordEvent records that the run published an event that is in its log, and returns the line to
// show; "" shows nothing. An event of the node that could not write may arrive before its report
// that it can. If another node cannot write, that does not affect this run.
func (j *journalWatch) recordEvent(e client.Event, now time.Time) string {
	if e.Agent != mailbox.Super { // its supervisor publishes events before the run is queued
		j.begun.Store(true)
	}
	j.moved = now
	switch {
	case j.down == nil || now.Sub(j.since) <= journalQuiet:
		return ""
	case e.Node == j.node:
		return j.recovered(now)
	}
	j.down = nil
	return ""
}

// queueNotice returns the line to show when a node reports that the run is queued; "" shows nothing.
func (j *journalWatch) queueNotice(e client.Event) string {
	var q event.RunQueued
	if e.Kind != event.KindRunQueued || json.Unmarshal(e.Data, &q) != nil {
		return ""
	}
	return j.process(journalReport{place: q.Position}, time.Now())
}

// overdue fails once the run has waited for too long.
func (j *journalWatch) overdue(run string, now time.Time) error {
	if j.down == nil {
		return nil
	}
	waited := now.Sub(j.since)
	late := !j.accepted.IsZero() && now.Sub(j.accepted) > j.hard
	if waited < j.patience && !late {
		return nil
	}
	return &exit.Failure{Code: exit.NoNode, Err: fmt.Errorf("%w: %s; run %s waits for %s", errJournal, j.down.Why, run, waited.Round(time.Second)), Hint: j.remedyText(run)}
}

// errJournal means that the log of the run cannot be written.
var errJournal = errors.New("the log of the run cannot be written")

func (j *journalWatch) remedyText(run string) string {
	return j.down.Remedy + ", then `troupe run --resume " + run + "` continues it"
}

// stopError returns the error of a stop that did not reach the run.
func (j *journalWatch) stopError(run string, code int, err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == client.CodeJournal {
		j.down = &client.JournalInfo{Why: refused.Text, Remedy: refused.Hint}
		return j.interruptedError(run, code)
	}
	return err
}

// interruptedError ends the command while the node cannot record a stop of the run.
func (j *journalWatch) interruptedError(run string, code int) error {
	return &exit.Failure{Code: code, Err: fmt.Errorf("interrupted, but the cancel did not reach the run: %w: %s", errJournal, j.down.Why), Hint: j.remedyText(run)}
}
