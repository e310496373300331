package node

import (
	"testing"
	"time"
)

// Changes of rows wait longer while many rows wait, so that the row of a run among many is written once.
func TestChangesOfRowsWaitWhileManyRowsWait(t *testing.T) {
	t.Parallel()
	for rows, want := range map[int]time.Duration{0: indexPause, 1: indexPause, indexWritesMax: indexPause, indexWritesMax + 1: indexPauseMax, 1 << 20: indexPauseMax} {
		if got := pauseOfChange(rows); got != want {
			t.Errorf("with %d rows: %s, want %s", rows, got, want)
		}
	}
}

// A timer that is set again while its function begins fires twice: the second function finds nothing to write, while the
// first one writes and after it.
func TestARowIsTakenOnceWhenItsTimerFiresTwice(t *testing.T) {
	t.Parallel()
	r := &pendingReport{added: true}
	w := &indexWriter{pending: map[string]*pendingReport{"run": r}}
	if _, ok := w.takePending("run", r); !ok {
		t.Error("a row that waits was not taken")
	}
	if _, ok := w.takePending("run", r); ok {
		t.Error("a row that is being written was taken again")
	}
	r.writing = false
	delete(w.pending, "run")
	if _, ok := w.takePending("run", r); ok {
		t.Error("a row that was written was taken again")
	}
	w.pending["run"] = &pendingReport{added: true}
	if _, ok := w.takePending("run", r); ok {
		t.Error("the timer of a row that was written has taken the next one")
	}
}
