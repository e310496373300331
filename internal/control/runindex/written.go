package runindex

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/supervisor"
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

const (
	// recentResultsMax is how many results of runs a node remembers, recentResultBytesMax how many
	// bytes of text they may have together.
	recentResultsMax     = 1024
	recentResultBytesMax = 4 << 20
	// agentResultBytes is what an agent counts in them.
	agentResultBytes = 512
)

// recentResults are the results of the runs that ended here last. Clients that wait for a run request
// its result the moment it ends; without recentResults each such request would replay the log of the run.
type recentResults struct {
	mu      sync.Mutex
	results map[string]recentResult
	old     []string // in the order in which they came
	bytes   int
}

// recentResult is the result of a run that has ended, and when this node learned that.
type recentResult struct {
	event.Result
	ended time.Time
}

// NoteState remembers the result of a run whose supervisor's log says that it is over, and wakes the
// callers that wait for it.
func (r *Index) NoteState(run string, s supervisor.State) {
	if s.Phase != supervisor.Over {
		return
	}
	result := bounds.FitAgents(s.Result())
	r.recent.put(run, recentResult{result, time.Now()})
	r.NoteResult(run, result)
}

// RecentResult returns the result of a run that ended here last, and when this node learned that.
func (r *Index) RecentResult(run string) (result event.Result, ended time.Time, ok bool) {
	recent, ok := r.recent.find(run)
	return recent.Result, recent.ended, ok
}

func resultBytes(r event.Result) int {
	return len(r.Text) + len(r.Detail) + len(r.Journal) + agentResultBytes*(1+len(r.Agents))
}

func (k *recentResults) put(run string, result recentResult) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(run)
	if resultBytes(result.Result) > recentResultBytesMax {
		return
	}
	if k.results == nil {
		k.results = map[string]recentResult{}
	}
	k.results[run] = result
	k.old = append(k.old, run)
	k.bytes += resultBytes(result.Result)
	for len(k.old) > recentResultsMax || k.bytes > recentResultBytesMax {
		k.remove(k.old[0])
	}
}

// remove forgets a result. The caller holds mu.
func (k *recentResults) remove(run string) {
	result, ok := k.results[run]
	if !ok {
		return
	}
	delete(k.results, run)
	k.bytes -= resultBytes(result.Result)
	if i := slices.Index(k.old, run); i == 0 { // the oldest, which makes room
		k.old = k.old[1:]
	} else {
		k.old = slices.Delete(k.old, i, i+1)
	}
}

func (k *recentResults) forget(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(run)
}

func (k *recentResults) find(run string) (result recentResult, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	result, ok = k.results[run]
	return result, ok
}
