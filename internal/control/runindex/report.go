package runindex

import (
	"cmp"
	"context"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Report is what a node records of a run in the index.
type Report struct {
	Node string // the name of the node
	// State is that of the run at Place of its supervisor's log; Place 0: unknown.
	State supervisor.State
	Place uint64
	// Result is that of a run that is over; nil: it is not.
	Result *event.Result
}

// Recorded is what Record has found and done.
type Recorded struct {
	Missing bool // there was no row
	// Parked says that by the row the run waits for people alone, and that a question is open.
	Parked bool
}

// Record writes a report into the row of its run, if there is a row.
func (r *Index) Record(ctx context.Context, run string, report Report) (Recorded, error) {
	return r.record(ctx, run, report, false)
}

// RecordOrAdd is Record that adds a row if there is none: the process that opened the run may have died before it wrote
// the row. The caller knows that the run was not deleted.
func (r *Index) RecordOrAdd(ctx context.Context, run string, report Report) (Recorded, error) {
	return r.record(ctx, run, report, true)
}

func (r *Index) record(ctx context.Context, run string, report Report, mayAdd bool) (done Recorded, err error) {
	var summary RowSummary
	if report.Place > 0 {
		summary = RowSummary{report.State.Summary(false), report.Place, mailbox.Form}
	}
	err = r.changeRow(ctx, run, func(row *Row) bool {
		done.Missing = row.isMissing()
		if done.Missing && !mayAdd {
			return false
		}
		changed := report.Result != nil
		if report.Place > 0 && row.setSummary(summary) {
			changed = true
		}
		if full := InfoOf(report.State, report.Node); done.Missing {
			row.RunInfo = full
		} else if report.Place > 0 && row.addMissing(full) {
			changed = true
		}
		if report.Result != nil {
			end := time.Now()
			if recent, ok := r.Ends.recent.find(run); ok { // clients may have read this time already
				end = recent.ended
			}
			FinishRow(&row.RunInfo, *report.Result, end)
		}
		s := row.SummaryOrEmpty()
		done.Parked = row.State != client.RunFinished && s.Parked && !row.IsAllAnswered(s)
		return changed
	})
	return done, err
}

// addMissing fills in what the process that wrote a row did not know: it may have had only the id of the run, or be of a
// release without owners.
func (r *Row) addMissing(full client.RunInfo) (changed bool) {
	if r.Title == "" && full.Title != "" {
		r.Title, r.Model, r.Conversation = full.Title, cmp.Or(r.Model, full.Model), cmp.Or(r.Conversation, full.Conversation)
		changed = true
	}
	if r.Agent == "" && full.Agent != "" {
		r.Agent, changed = full.Agent, true
	}
	if r.Fork == "" && full.Fork != "" {
		r.Fork, changed = full.Fork, true
	}
	if r.Owner == "" && full.Owner != "" {
		r.Owner, changed = full.Owner, true
	}
	return changed
}

// Repair replaces an older Summary of a row, if there is a row.
func (r *Index) Repair(ctx context.Context, run string, s RowSummary) error {
	return r.changeRow(ctx, run, func(row *Row) bool { return !row.isMissing() && row.setSummary(s) })
}
