// Package runindex has the index of runs: one row for each, in a key-value bucket, from which lists are made. A row is a
// hint, and the log of the run is authoritative. The package writes and reads rows, remembers what this process has
// written, and wakes the callers in this process that wait for a run. It reads no logs.
package runindex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/clip"
)

// Index is the index of runs: a hint for lists, kept in a key-value bucket. The log of a run
// is authoritative.
type Index struct {
	kv jetstream.KeyValue
	// ListQuiet is how long List waits for a row that the bucket claims to have, while the
	// bucket answers: a corrupt row never comes. Default ListQuietDefault.
	ListQuiet time.Duration
	// LogStore is where this process keeps logs: statedir.LogsInFiles or LogsInJetStream; "": it does not say. One index
	// can list runs of both: the nodes of `troupe up` use streams of a server whose own node would use files.
	LogStore string

	written writtenRows
	recent  recentResults
	waiters runWaiters
	own     ownIndex
}

// ListQuietDefault is the default of Index.ListQuiet.
const ListQuietDefault = 5 * time.Second

// Open opens the index.
func Open(b *bus.Buckets) *Index {
	return &Index{kv: b.Runs, ListQuiet: ListQuietDefault}
}

// Add writes the row of a run that has none, and returns the current row. It does not
// overwrite a row that another writer has added meanwhile: that row may say that the run
// has ended.
func (r *Index) Add(ctx context.Context, i client.RunInfo) (there client.RunInfo, err error) {
	err = r.Change(ctx, i.RunID, func(row *client.RunInfo) {
		if row.State == "" {
			*row = i
		}
		there = *row
	})
	return there, err
}

// Change replaces a row by the result of change, which gets the current row, or an empty
// one if there is none. Other writers may write the same row at the same time, so change
// may be called again.
func (r *Index) Change(ctx context.Context, run string, change func(*client.RunInfo)) error {
	return r.changeRow(ctx, run, infoChange(change))
}

// ChangeMissing is Change for a row that was just found missing.
func (r *Index) ChangeMissing(ctx context.Context, run string, change func(*client.RunInfo)) error {
	written, err := r.writeChange(ctx, run, Row{}, 0, infoChange(change))
	if err != nil || written {
		return err
	}
	return r.Change(ctx, run, change)
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
		r.waiters.wake(run, nil)
	}
	return true, nil
}

// FinishRow ends a row. If the row has no start time, it takes the one of the result:
// without one, a row would never be old enough for prune.
func FinishRow(i *client.RunInfo, r event.Result, now time.Time) {
	i.State, i.Result = client.RunFinished, &r
	if i.Ended == "" {
		i.Ended = now.UTC().Format(time.RFC3339)
	}
	if i.Started == "" {
		i.Started = now.Add(-time.Duration(r.DurationMS) * time.Millisecond).UTC().Format(time.RFC3339)
	}
}

// MarkRemoving records that the removal of a run has begun. Without room in the index the removal goes on unmarked: it
// makes room.
func (r *Index) MarkRemoving(ctx context.Context, run string) error {
	err := r.changeRow(ctx, run, func(row *Row) bool {
		if row.RunID == "" || row.Removing {
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
	r.recent.forget(run)
	defer r.waiters.wake(run, nil)
	err := r.kv.Purge(ctx, run, jetstream.PurgeTTL(bus.MarkerTTL))
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("control: remove the row of %s: %w", run, err)
	}
	return nil
}

// rowTextBytes is the most of a text in a row: what a model, a provider or a client wrote must not fill the index.
const rowTextBytes = 2 << 10

// Summarize returns a row as the index has it: the answer, the agents and the whole texts of a run are in its
// log, and before its end there is no result.
func Summarize(i client.RunInfo) client.RunInfo {
	if i.State != client.RunFinished {
		i.Result = nil
	}
	if i.Result != nil {
		short := *i.Result
		short.Text, short.Agents = "", nil
		short.Detail, short.Journal = clip.Text(short.Detail, rowTextBytes), clip.Text(short.Journal, rowTextBytes)
		if short.Cancel != nil {
			cancel := *short.Cancel
			cancel.Why = clip.Text(cancel.Why, rowTextBytes)
			short.Cancel = &cancel
		}
		i.Result = &short
	}
	return i
}

// Get reads a row; ok is false if it does not exist.
func (r *Index) Get(ctx context.Context, run string) (i client.RunInfo, ok bool, err error) {
	row, ok, err := r.GetRow(ctx, run)
	return row.RunInfo, ok, err
}

// GetRow is Get for a whole row.
func (r *Index) GetRow(ctx context.Context, run string) (row Row, ok bool, err error) {
	if names.CheckToken(run) != nil {
		return row, false, nil // no run has such an id
	}
	if row, ok = r.own.findUnwritten(run); ok {
		return row, true, nil
	}
	if row, _, err = r.readRow(ctx, run); err == nil && r.IsElsewhere(row) {
		return row, false, elsewhereError(row)
	}
	return row, row.RunID != "", err
}

// IsElsewhere reports whether the logs of a run are in a store that this process does not read. To it, such a run
// would seem to have lost its logs.
func (r *Index) IsElsewhere(row Row) bool {
	return row.LogStore != "" && r.LogStore != "" && row.LogStore != r.LogStore
}

func elsewhereError(row Row) error {
	if row.LogStore == statedir.LogsInFiles {
		return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the logs of %s are files of the state directory, which the nodes of this server do not read", row.RunID),
			Hint: "stop `troupe up`, or the server, and send the command again: troupe run wrote these files, and a command without a server reads them"}
	}
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the logs of %s are streams of a server, which this process does not read", row.RunID),
		Hint: "start `troupe up`, which has run it, and send the command again"}
}

// readRow reads a row with its revision. A row that does not decode counts as missing.
func (r *Index) readRow(ctx context.Context, run string) (i Row, revision uint64, err error) {
	e, err := r.kv.Get(ctx, run)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return i, 0, nil
	case err != nil:
		return i, 0, fmt.Errorf("control: read the row of %s: %w", run, err)
	}
	if json.Unmarshal(e.Value(), &i) != nil {
		i = Row{}
	}
	return i, e.Revision(), nil
}

// titleBytes is how much of its task is the title of a run.
const titleBytes = 80

// TitleOf returns the title of a run.
func TitleOf(task string) string { return clip.Marked(task, titleBytes, "…") }

// Room returns how many bytes of the index are used.
func (r *Index) Room(ctx context.Context) (used, most uint64, err error) {
	s, err := r.kv.Status(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("control: room of the index: %w", err)
	}
	return s.Bytes(), uint64(max(0, s.Config().MaxBytes)), nil
}
