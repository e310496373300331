// Package runindex has the index of runs: one row for each, in a key-value bucket, from which lists are made. A row is a
// hint, and the log of the run is authoritative. The package writes and reads rows, remembers what this process has
// written, and wakes the callers in this process that wait for a run. It reads no logs.
//
// index.go and list.go read rows, change.go, report.go and answered.go write them, and own.go and written.go save reads.
// ends.go needs no row.
package runindex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
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

	// Ends is what this process knows of the ends of runs.
	Ends Ends

	written writtenRows
	own     ownIndex
}

// ListQuietDefault is the default of Index.ListQuiet.
const ListQuietDefault = 5 * time.Second

// Open opens the index.
func Open(b *bus.Buckets) *Index {
	return &Index{kv: b.Runs, ListQuiet: ListQuietDefault}
}

// Get reads a row; ok is false if it does not exist.
func (r *Index) Get(ctx context.Context, run string) (row Row, ok bool, err error) {
	if names.CheckToken(run) != nil {
		return row, false, nil // no run has such an id
	}
	if row, ok = r.own.findUnwritten(run); ok {
		return row, true, nil
	}
	if row, _, err = r.readRow(ctx, run); err == nil && r.IsElsewhere(row) {
		return row, false, elsewhereError(row)
	}
	return row, !row.isMissing(), err
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

// Room returns how many bytes of the index are used.
func (r *Index) Room(ctx context.Context) (used, most uint64, err error) {
	s, err := r.kv.Status(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("control: room of the index: %w", err)
	}
	return s.Bytes(), uint64(max(0, s.Config().MaxBytes)), nil
}
