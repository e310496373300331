package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// journalPatience is how long a run that is followed may be unable to write its
	// log until the command gives up: --journal-patience.
	journalPatience = 2 * time.Minute
	// A run that is quiet for journalQuiet has its node asked whether it can write, and
	// again every journalPause.
	journalQuiet = 2 * time.Second
	journalPause = time.Second
	// journalAhead is how many answers may wait to be shown.
	journalAhead = 16
)

// journalWatch knows whether the node of a run can write its logs. A run whose log
// cannot be written says nothing, and nothing in the log can end it: its limits in time
// hold here.
type journalWatch struct {
	patience time.Duration
	hard     time.Duration // of the run's wall clock
	accepted time.Time     // when the run was

	down  *client.JournalInfo // nil: the logs can be written, as far as is known
	node  string              // which said so
	since time.Time           // when that was heard
	moved time.Time           // when an entry of the run was heard of last
	low   bool                // it was said that there is little room
	begun atomic.Bool         // an agent of the run said something: it is not queued
	place int                 // in the queue, as was said last
}

// journalNews is what a node says.
type journalNews struct {
	node string
	info *client.JournalInfo // nil: all is well
	// place is that of the run in the queue of its node; it says nothing of the journal.
	place int
}

func newJournalWatch(flags *runFlags) *journalWatch {
	hard := int64(agent.HardDefaultMS)
	if soft := flags.request.TimeoutMS; soft > 0 {
		hard = agent.HardLimitMS(soft)
	}
	return &journalWatch{patience: flags.patience, hard: time.Duration(hard) * time.Millisecond}
}

// listen brings the news of the nodes until ctx ends.
func (j *journalWatch) listen(ctx context.Context, s *seat, run string) (<-chan journalNews, error) {
	news := make(chan journalNews, journalAhead)
	give := func(n journalNews) {
		select {
		case news <- n:
		default: // the next answer says it again
		}
	}
	stop, err := s.WatchJournals(func(node string, info *client.JournalInfo) { give(journalNews{node: node, info: info}) })
	if err != nil {
		return nil, err
	}
	go func() {
		defer stop()
		for pause(ctx, journalPause) == nil {
			if !j.begun.Load() {
				if info, err := s.Get(ctx, run); err == nil && info.Position > 0 {
					give(journalNews{place: info.Position})
				}
			}
			list, err := s.Nodes(ctx)
			if err != nil {
				continue // who follows the events notices that
			}
			for _, n := range list {
				if n.Proof != nil { // it is the one that answers, and knows
					give(journalNews{node: n.Name, info: n.Journal})
				}
			}
		}
	}()
	return news, nil
}

// take hears what a node says, and returns what is to be said of it; "" is nothing.
func (j *journalWatch) take(n journalNews, now time.Time) string {
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
		took := now.Sub(j.since).Round(100 * time.Millisecond)
		j.down = nil
		return fmt.Sprintf("the logs can be written again after %s: the run goes on", took)
	}
	return ""
}

// heard notes that the run said something that is in its log: where it is another
// node that cannot write, this run has no part in it.
func (j *journalWatch) heard(e client.Event, now time.Time) {
	if e.Agent != mailbox.Super { // its supervisor speaks before it is queued
		j.begun.Store(true)
	}
	if j.moved = now; j.down != nil && now.Sub(j.since) > journalQuiet {
		j.down = nil
	}
}

// queued is what is to be said when a node says that the run is queued; "" is nothing.
func (j *journalWatch) queued(e client.Event) string {
	var q client.RunQueued
	if e.Kind != "run.queued" || json.Unmarshal(e.Data, &q) != nil {
		return ""
	}
	return j.take(journalNews{place: q.Position}, time.Now())
}

// over fails once the run has waited for too long.
func (j *journalWatch) over(run string, now time.Time) error {
	if j.down == nil {
		return nil
	}
	waited := now.Sub(j.since)
	late := !j.accepted.IsZero() && now.Sub(j.accepted) > j.hard
	if waited < j.patience && !late {
		return nil
	}
	return &failure{exitNoNode, fmt.Errorf("%w: %s; run %s waits for %s", errJournal, j.down.Why, run, waited.Round(time.Second)), j.remedy(run)}
}

// errJournal: the log of the run cannot be written.
var errJournal = errors.New("the log of the run cannot be written")

func (j *journalWatch) remedy(run string) string {
	return j.down.Remedy + ", then `troupe run --resume " + run + "` continues it"
}

// untold is the error of a stop that could not be told to the run.
func (j *journalWatch) untold(run string, code int, err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == client.CodeJournal {
		j.down = &client.JournalInfo{Why: refused.Text, Remedy: refused.Hint}
		return j.interrupted(run, code)
	}
	return err
}

// interrupted ends the command while the run cannot be told to stop.
func (j *journalWatch) interrupted(run string, code int) error {
	return &failure{code, fmt.Errorf("interrupted, and the run could not be told: %w: %s", errJournal, j.down.Why), j.remedy(run)}
}
