package local

import (
	"testing"
)

// lazyWriter returns the writer of a lazy store that is synced by the test alone.
func lazyWriter(t *testing.T, disk disk) *batchWriter {
	t.Helper()
	s := openLocal(t, Config{Dir: t.TempDir(), disk: disk})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.cfg.Lazy, s.wal.lazy = true, true
	return &batchWriter{Store: s}
}

func (w *batchWriter) appendOne(t *testing.T, text string) {
	t.Helper()
	ops := []operation{{ctx: t.Context(), to: "run.a", data: []byte(text), cost: 1}}
	w.prepareBatch(ops)
	if err := w.writeRecords(ops); err != nil {
		t.Fatal(err)
	}
	w.applyBatch(ops)
}

// TestFailedSyncLeavesItsEntriesInDoubt: after a sync has failed, nobody knows which entries of the segment the
// disk has, and a sync of another segment does not change that. Once they are in the table, they are safe.
func TestFailedSyncLeavesItsEntriesInDoubt(t *testing.T) {
	disk := newCrashDisk()
	w := lazyWriter(t, disk)
	w.appendOne(t, "first")
	sync := []operation{syncOperation()}
	disk.setFailure(errDiskFull)
	if err := w.writeRecords(sync); err == nil {
		t.Fatal("the sync does not fail")
	}
	disk.setFailure(nil)
	for range 2 { // without a segment, and with another one
		if err := w.writeRecords(sync); err != nil {
			t.Fatal(err)
		}
		if w.synced > 0 {
			t.Fatalf("place %d counts as synced after its sync failed", w.synced)
		}
		w.appendOne(t, "another")
	}

	if err := w.wal.end(); err != nil {
		t.Fatal(err)
	}
	if err := w.makeRoom(1); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	for w.frozen != nil {
		w.folded.Wait()
	}
	w.mu.Unlock()
	if err := w.writeRecords(sync); err != nil || w.synced != w.end {
		t.Errorf("place %d of %d counts as synced after the fold, %v", w.synced, w.end, err)
	}
}

// TestEndedSegmentIsSynced: the next segment says that the entries of the one before it are on the disk, so that
// what is missing of them later counts as rotten.
func TestEndedSegmentIsSynced(t *testing.T) {
	w := lazyWriter(t, newCrashDisk())
	w.appendOne(t, "first")
	if w.synced != 0 {
		t.Fatalf("place %d counts as synced before any sync", w.synced)
	}
	if err := w.beginSegment(); err != nil {
		t.Fatal(err)
	}
	if w.synced != 1 {
		t.Errorf("place %d counts as synced after the segment of place 1 has ended", w.synced)
	}
}
