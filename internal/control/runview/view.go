// Package runview makes the views of runs that requests show: the row of a run, completed by what the log of its supervisor
// has since. It repairs the Summary of a row, and appends nothing to a log. What a request does with a view is not here.
//
// A view needs the row, which has a Summary, and the few entries of the supervisor's log after it. The log is replayed only if
//   - the row has no Summary, or one of a newer form;
//   - the log no longer holds the entry up to which the Summary was made, or cannot be read;
//   - more than tailMax entries follow that entry;
//   - an entry may have changed the Summary, and no node writes the row: the run may have no node;
//   - the request needs agents or questions that were cut from the Summary.
package runview

import (
	"slices"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// View is what a request sees of a run: its row and its summary.
type View struct {
	Row     runindex.Row
	Summary supervisor.Summary // no Phase: the supervisor has no log
	Damage  string             // of the supervisor's log, if a replay found any
	// Replayed is the state that a replay has found; nil: the row was enough.
	Replayed *supervisor.State
	place    uint64 // of the last entry that the replay has read
}

// Seen is the summary with the place up to which the log was read for it.
func (v View) Seen() runindex.RowSummary {
	place := v.place
	if v.Replayed == nil && v.Row.Summary != nil {
		place = v.Row.Summary.Place
	}
	return runindex.RowSummary{Summary: v.Summary, Place: place, Form: mailbox.Form}
}

// State returns the state of the run. If its log is gone or does not exist yet, the row counts.
// The same holds if the row says that the run has ended and the log does not: its supervisor was
// given up, so no process could append the end.
func (v View) State() client.RunState {
	s := v.Summary
	switch {
	case s.Phase == "" || v.Row.State == client.RunFinished && s.Phase != supervisor.Over:
		return v.Row.State
	case s.Phase == supervisor.Over:
		return client.RunFinished
	case s.Phase == supervisor.Queued:
		return client.RunQueued
	case s.Parked && !v.Row.IsAllAnswered(s):
		return client.RunParked
	case !s.Active && time.Since(time.UnixMilli(s.BeganMS)) > queuedAfter:
		return client.RunQueued
	}
	return client.RunLive
}

// queuedAfter is how long a run may have no activation before it is shown as queued: a node
// that takes up a run immediately needs some milliseconds.
const queuedAfter = 2 * time.Second

// Questions returns the open questions that no client has answered.
func (v View) Questions() []supervisor.OpenQuestion {
	if v.State() == client.RunFinished {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.Summary.Questions), v.Row.IsAnswered)
}

func (v View) isCut() bool { return v.Summary.AgentsCut || v.Summary.QuestionsCut }

// LacksQuestions reports whether the summary has not all open questions.
func (v View) LacksQuestions() bool { return v.Summary.QuestionsCut }
