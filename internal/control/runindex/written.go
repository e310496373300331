package runindex

import (
	"container/list"
	"sync"

	"github.com/troupe-run/troupe/client"
)

// writtenRowsMax is how many rows a node remembers as it last wrote them: those of its live runs,
// by default.
const writtenRowsMax = 1024

// writtenRows are rows as this node last wrote them, with their revisions: the next write of such a
// row needs no read. If another node has written it meanwhile, the server refuses the revision, and
// the row is read.
type writtenRows struct {
	mu    sync.Mutex
	rows  map[string]*list.Element // of order
	order list.List                // of writtenRow: the row that was written longest ago first
}

type writtenRow struct {
	row      Row
	run      string
	revision uint64
}

// take returns a row and forgets it: a change may alter what the row points to.
func (w *writtenRows) take(run string) (row Row, revision uint64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, ok := w.remove(run)
	return k.row, k.revision, ok
}

// remove forgets a row. The caller holds mu.
func (w *writtenRows) remove(run string) (k writtenRow, ok bool) {
	at := w.rows[run]
	if at == nil {
		return k, false
	}
	delete(w.rows, run)
	k, ok = w.order.Remove(at).(writtenRow)
	return k, ok
}

// keep remembers a row that was written. A row that has ended is hardly written again.
func (w *writtenRows) keep(run string, row Row, revision uint64) {
	if row.State == client.RunFinished {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rows == nil {
		w.rows = map[string]*list.Element{}
	}
	w.remove(run)
	w.rows[run] = w.order.PushBack(writtenRow{row, run, revision})
	if len(w.rows) > writtenRowsMax {
		if oldest, ok := w.order.Front().Value.(writtenRow); ok {
			w.remove(oldest.run)
		}
	}
}
