package runindex

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/troupe-run/troupe/client"
)

// settleRoundsMax is how often a list reads on because rows were written meanwhile.
const settleRoundsMax = 8

// RawRow is a row as the index holds it.
type RawRow struct {
	Run  string
	data []byte
}

// StartKey sorts runs by their start: the key of a younger run is larger. The id of a run begins with its start, or, if a
// person has chosen the id, the row has it.
func (r RawRow) StartKey() string {
	if id, err := ulid.ParseStrict(strings.ToUpper(r.Run)); err == nil {
		return id.String()
	}
	row, _ := r.Decode() // an unreadable one is left out of lists
	began, err := time.Parse(time.RFC3339, row.Started)
	var id ulid.ULID
	if err != nil || id.SetTime(ulid.Timestamp(began)) != nil {
		return r.Run
	}
	return id.String() + r.Run
}

// Decode returns the row; ok is false if it is unreadable.
func (r RawRow) Decode() (row Row, ok bool) {
	ok = json.Unmarshal(r.data, &row) == nil
	row.RunID = cmp.Or(row.RunID, r.Run)
	return row, ok
}

// List reads all rows, newest first. It leaves out unreadable rows.
func (r *Index) List(ctx context.Context) ([]client.RunInfo, error) {
	rows, err := r.ListRows(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]client.RunInfo, len(rows))
	for i := range rows {
		list[i] = rows[i].RunInfo
	}
	return list, nil
}

// ListRows is List for whole rows. It leaves out runs whose logs this process does not read.
func (r *Index) ListRows(ctx context.Context) ([]Row, error) {
	all, err := r.RawRows(ctx, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(all))
	for _, raw := range all {
		if row, ok := raw.Decode(); ok && !r.IsElsewhere(row) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// RawRows reads the rows of the runs that are wanted, newest first. A row that is written while the
// others are read moves behind them, and behind the marker at their end: RawRows reads on until it has
// every write.
func (r *Index) RawRows(ctx context.Context, wanted func(run string) bool) ([]RawRow, error) {
	unwritten := r.own.rawUnwritten(wanted) // before the others are read: they may be written meanwhile
	newest, err := r.newestRevision(ctx)
	if err != nil {
		return nil, err
	}
	w, err := r.kv.WatchAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("control: list runs: %w", err)
	}
	defer func() { _ = w.Stop() }() // its consumer is ephemeral
	l := rowList{runs: r, updates: w.Updates(), wanted: wanted, rows: unwritten}
	for range settleRoundsMax {
		if whole, err := l.readTo(ctx, newest); err != nil || !whole {
			return l.newestFirst(), err
		}
		now, err := r.newestRevision(ctx)
		if err != nil {
			return nil, err
		}
		if now <= max(newest, l.revision) {
			break
		}
		newest = now
	}
	return l.newestFirst(), nil
}

// newestRevision returns the revision of the newest write to the index.
func (r *Index) newestRevision(ctx context.Context) (uint64, error) {
	s, err := r.kv.Status(ctx)
	if err != nil {
		return 0, fmt.Errorf("control: list runs: %w", err)
	}
	bucket, ok := s.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return 0, fmt.Errorf("control: list runs: no revision in a %T", s)
	}
	return bucket.StreamInfo().State.LastSeq, nil
}

// rowList is the rows that RawRows has read.
type rowList struct {
	runs     *Index
	updates  <-chan jetstream.KeyValueEntry
	wanted   func(run string) bool
	rows     map[string]RawRow
	revision uint64 // of the newest row
	marked   bool   // the rows that were there at the beginning were read
}

// readTo reads rows up to the marker, and then up to a revision. It is not whole if a row does not come
// while the bucket answers.
func (l *rowList) readTo(ctx context.Context, revision uint64) (whole bool, err error) {
	quiet, answered := time.NewTimer(l.runs.ListQuiet), false
	defer quiet.Stop()
	for marked := l.marked; !l.marked || marked && l.revision < revision; {
		select {
		case <-quiet.C:
			_, err := l.runs.kv.Status(ctx)
			if err == nil && answered {
				return false, nil
			}
			answered = err == nil
		case e, open := <-l.updates:
			if !open {
				return false, fmt.Errorf("control: list runs: %w", cmp.Or(ctx.Err(), nats.ErrConnectionClosed))
			}
			answered = false
			l.add(e)
		case <-ctx.Done():
			return false, fmt.Errorf("control: list runs: %w", ctx.Err())
		}
		quiet.Reset(l.runs.ListQuiet)
	}
	return true, nil
}

// add adds a row, or the marker.
func (l *rowList) add(e jetstream.KeyValueEntry) {
	if e == nil {
		l.marked = true
		return
	}
	l.revision = e.Revision()
	switch {
	case e.Operation() != jetstream.KeyValuePut:
		delete(l.rows, e.Key())
	case l.wanted(e.Key()):
		l.rows[e.Key()] = RawRow{e.Key(), e.Value()}
	}
}

func (l *rowList) newestFirst() []RawRow {
	keys := make(map[string]string, len(l.rows))
	for run, row := range l.rows {
		keys[run] = row.StartKey()
	}
	return slices.SortedFunc(maps.Values(l.rows), func(a, b RawRow) int { return cmp.Compare(keys[b.Run], keys[a.Run]) })
}
