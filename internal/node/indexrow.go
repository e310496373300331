package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	// indexTimeout bounds one attempt to write a row, indexRetryPause is the time between two.
	indexTimeout    = 5 * time.Second
	indexRetryPause = 500 * time.Millisecond
	// indexPause is how long a change of a row waits for others, which are written together with
	// it: a short run writes its row once. The end of a run and a question to a person do not wait. While more than
	// indexWritesMax rows wait, each waits for indexPauseMax: runs take longer then, too, and a row that is written
	// twice is synced to the disk three times.
	indexPause    = 50 * time.Millisecond
	indexPauseMax = 2 * time.Second
	// indexWritesMax is how many rows are written at once.
	indexWritesMax = 16
)

// indexWriter writes the states that the actors of this node report of their runs into the index. Of the states of one run
// it writes the newest. A row that waits for more changes costs a timer. When the timer fires, a goroutine writes the row,
// which waits for a slot while indexWritesMax rows are being written.
type indexWriter struct {
	node   *Node
	writes chan struct{} // a slot for each write

	mu      sync.Mutex
	pending map[string]*pendingReport // by run
}

// pendingReport is what was reported of a run and is not yet written.
type pendingReport struct {
	report  *runindex.Report // nil: none
	added   bool             // the row was added to the index, and is not written yet
	urgent  bool             // it is written without a pause
	writing bool             // a goroutine writes it, and sets the timer again for what is reported meanwhile
	timer   *time.Timer      // its function is writeRow
}

func newIndexWriter(h *Node) *indexWriter {
	w := &indexWriter{node: h, writes: make(chan struct{}, indexWritesMax), pending: map[string]*pendingReport{}}
	context.AfterFunc(h.lifetime, w.flush)
	return w
}

// recordState writes the state of a run at a place of its supervisor's log.
func (w *indexWriter) recordState(run string, place uint64, s supervisor.State) {
	w.node.runs.Ends.NoteState(run, s)
	w.node.lanes.recordState(run, s)
	w.enqueue(run, s.IsParked(), func(r *runindex.Report) {
		if place > r.Place {
			r.State, r.Place = s, place
		}
	})
}

// recordResult writes the result of a run that is over.
func (w *indexWriter) recordResult(run string, result event.Result) {
	w.node.runs.Ends.NoteResult(run, result)
	w.enqueue(run, true, func(r *runindex.Report) { r.Result = &result })
}

// recordAdded writes the row of a run that was opened.
func (w *indexWriter) recordAdded(run string) { w.enqueue(run, false, nil) }

// enqueue writes the row of a run soon: with a change of what is reported of it, or as it was added.
func (w *indexWriter) enqueue(run string, urgent bool, change func(*runindex.Report)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, waits := w.pending[run]
	if !waits {
		r = &pendingReport{}
		w.pending[run] = r
		w.node.background.Add(1)
		r.timer = time.AfterFunc(w.pauseOf(r), func() { w.writeRow(run, r) })
	}
	if r.report == nil && change != nil {
		r.report = &runindex.Report{}
	}
	if change != nil {
		change(r.report)
	} else {
		r.added = true
	}
	if urgent && !r.urgent {
		r.urgent = true
		if !r.writing {
			r.timer.Reset(0)
		}
	}
}

// pauseOf is how long a row waits for more changes. It is called under mu.
func (w *indexWriter) pauseOf(r *pendingReport) time.Duration {
	if r.urgent || w.node.lifetime.Err() != nil {
		return 0
	}
	return pauseOfChange(len(w.pending))
}

// pauseOfChange is how long a change of a row waits while a number of rows wait.
func pauseOfChange(rows int) time.Duration {
	if rows > indexWritesMax {
		return indexPauseMax
	}
	return indexPause
}

// flush writes all rows that wait.
func (w *indexWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.pending {
		if !r.writing {
			r.timer.Reset(0)
		}
	}
}

// writeRow writes what is pending of a run. What is reported meanwhile waits for another pause.
func (w *indexWriter) writeRow(run string, r *pendingReport) {
	report, ok := w.takePending(run, r)
	if !ok {
		return
	}
	h := w.node
	report.Node = h.cfg.Name
	err := w.writeOnce(run, report)
	// A full disk or index: the log has the report, and the row waits.
	for (bus.IsUnavailable(err) || bus.IsFull(err)) && w.pause(indexRetryPause) {
		err = w.writeOnce(run, report)
	}
	if err != nil {
		h.cfg.Logger.Warn("the index of runs was not written", "run", run, "error", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.writing = false; r.report != nil || r.added {
		r.timer.Reset(w.pauseOf(r))
		return
	}
	delete(w.pending, run)
	h.background.Done()
}

// takePending takes the newest report of a run; ok is false if another goroutine writes it or has written it: enqueue
// and flush set the timer again although its function may have begun, which then runs twice.
func (w *indexWriter) takePending(run string, r *pendingReport) (report runindex.Report, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.writing || w.pending[run] != r {
		return runindex.Report{}, false
	}
	if r.report != nil {
		report = *r.report
	}
	r.report, r.added, r.urgent, r.writing = nil, false, false, true
	return report, true
}

// pause waits for d; it returns false if the node closes meanwhile.
func (w *indexWriter) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.node.lifetime.Done():
		return false
	}
}

// writeOnce tries once to write a report into the row of a run, and publishes that the run waits for a person.
func (w *indexWriter) writeOnce(run string, report runindex.Report) error {
	ctx, cancel := context.WithTimeout(context.Background(), indexTimeout)
	defer cancel()
	select { // the wait counts: otherwise Close would wait for many rows one after the other
	case w.writes <- struct{}{}:
		defer func() { <-w.writes }()
	case <-ctx.Done():
		return fmt.Errorf("node: the index of runs: %w", ctx.Err())
	}
	h := w.node
	done, err := h.runs.Record(ctx, run, report)
	if err == nil && done.Missing {
		done, err = w.addRow(ctx, run, report)
	}
	// A request may have written the row before, and a write may count without its answer: the
	// event follows from what the row says now, and is published again for each question that is
	// added. It is not published while all questions have answers that no agent has read yet.
	if err == nil && report.Place > 0 && done.Parked && report.State.IsParked() {
		h.runs.Ends.NoteParked(run)
		h.events.queueEvent(control.RunParkedEvent(mailbox.At(run, mailbox.Super), h.cfg.Name, report, time.Now()))
	}
	return err
}

// addRow adds the row of a run that has none, unless the run was deleted: before, or while the row was written.
func (w *indexWriter) addRow(ctx context.Context, run string, report runindex.Report) (done runindex.Recorded, err error) {
	h := w.node
	deleted, err := runlog.IsDeleted(ctx, h.post, run)
	if err != nil || deleted {
		return done, err
	}
	if done, err = h.runs.RecordOrAdd(ctx, run, report); err != nil {
		return done, err
	}
	if deleted, err = runlog.IsDeleted(ctx, h.post, run); err == nil && deleted {
		return runindex.Recorded{}, h.runs.Remove(ctx, run)
	}
	return done, err
}
