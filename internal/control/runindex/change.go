package runindex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// Add writes the row of a run that has none, and returns the current row. It does not
// overwrite a row that another writer has added meanwhile: that row may say that the run
// has ended.
func (r *Index) Add(ctx context.Context, i client.RunInfo) (there client.RunInfo, err error) {
	err = r.changeRow(ctx, i.RunID, func(row *Row) (added bool) {
		if added = row.isMissing(); added {
			row.RunInfo = i
		}
		there = row.RunInfo
		return added
	})
	return there, err
}

// Change replaces a row by the result of change, which gets the current row, or an empty
// one if there is none. Other writers may write the same row at the same time, so change
// may be called again.
func (r *Index) Change(ctx context.Context, run string, change func(*client.RunInfo)) error {
	return r.changeRow(ctx, run, infoChange(change))
}

// AddOpened writes the row of a run that was just opened. A short run may have ended already, and its row may say so: that
// state stays.
func (r *Index) AddOpened(ctx context.Context, info client.RunInfo) error {
	add := func(i *client.RunInfo) {
		i.Title, i.Agent, i.Fork, i.Model, i.Node, i.Started = info.Title, info.Agent, info.Fork, info.Model, info.Node, info.Started
		i.State, i.Conversation, i.Owner = cmp.Or(i.State, info.State), info.Conversation, cmp.Or(info.Owner, i.Owner)
	}
	written, err := r.writeChange(ctx, info.RunID, Row{}, 0, infoChange(add)) // hardly ever there is one to read first
	if err != nil || written {
		return err
	}
	return r.Change(ctx, info.RunID, add)
}

func infoChange(change func(*client.RunInfo)) func(*Row) bool {
	return func(row *Row) bool {
		change(&row.RunInfo)
		return true
	}
}

// changeRow is Change for a whole row; change returns false to leave it as it is.
func (r *Index) changeRow(ctx context.Context, run string, change func(*Row) bool) error {
	// A row that is not in the bucket yet is written, whatever change says.
	if u := r.own.beginWrite(run); u != nil {
		written, err := r.writeChange(ctx, run, u.Row, 0, func(row *Row) bool {
			change(row)
			return true
		})
		switch {
		case err != nil:
			return err
		case r.own.endWrite(run, u):
			return r.Remove(ctx, run) // its delete marker may be older than the row
		case written:
			return nil
		}
	}
	// The row as this process wrote it last: if another writer was faster, it conflicts.
	if row, revision, ok := r.written.take(run); ok {
		if written, err := r.writeChange(ctx, run, row, revision, change); err != nil || written {
			return err
		}
	}
	for {
		row, revision, err := r.readRow(ctx, run)
		if err != nil {
			return err
		}
		left := false
		written, err := r.writeChange(ctx, run, row, revision, func(row *Row) bool {
			left = !change(row)
			return !left
		})
		if err != nil || written || left {
			return err
		}
	}
}

// writeChange writes a changed row unless another writer has written it after the given revision;
// 0: it does not exist.
func (r *Index) writeChange(ctx context.Context, run string, row Row, revision uint64, change func(*Row) bool) (written bool, err error) {
	if !change(&row) {
		return false, nil
	}
	row.RunID = run
	row.RunInfo = Summarize(row.RunInfo)
	if revision == 0 {
		row.LogStore = r.LogStore
	}
	data, err := json.Marshal(row)
	if err != nil {
		return false, fmt.Errorf("control: encode the row of %s: %w", run, err)
	}
	if revision == 0 {
		revision, err = r.kv.Create(ctx, run, data)
	} else {
		revision, err = r.kv.Update(ctx, run, data, revision)
	}
	switch {
	case bus.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("control: write the row of %s: %w", run, err)
	}
	r.own.note(run)
	r.written.keep(run, row, revision)
	if row.State == client.RunFinished {
		r.Ends.waiters.wake(run, nil)
	}
	return true, nil
}

// MarkRemoving records that the removal of a run has begun. Without room in the index the removal goes on unmarked: it
// makes room.
func (r *Index) MarkRemoving(ctx context.Context, run string) error {
	err := r.changeRow(ctx, run, func(row *Row) bool {
		if row.isMissing() || row.Removing {
			return false
		}
		row.Removing = true
		return true
	})
	if bus.IsFull(err) {
		return nil
	}
	return err
}

// Remove removes a row. Its delete marker expires.
func (r *Index) Remove(ctx context.Context, run string) error {
	r.own.removeUnwritten(run)
	r.written.take(run)
	r.Ends.recent.forget(run)
	defer r.Ends.waiters.wake(run, nil)
	err := r.kv.Purge(ctx, run, jetstream.PurgeTTL(bus.MarkerTTL))
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("control: remove the row of %s: %w", run, err)
	}
	return nil
}
