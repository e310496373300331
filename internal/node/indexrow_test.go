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
