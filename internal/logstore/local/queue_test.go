package local

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// TestAnswerOfACanceledAppendMayReadTheStore: the context of an append ends after the writer took
// it, and its done reads the Store.
func TestAnswerOfACanceledAppendMayReadTheStore(t *testing.T) {
	s := openLocal(t, Config{Dir: t.TempDir(), disk: newCrashDisk()})
	w := &batchWriter{Store: s}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answered := make(chan error, 1)
	op := operation{ctx: ctx, to: "run.a", data: []byte("x"), done: func(_ uint64, err error) {
		s.lastVisible()
		answered <- err
	}}
	go w.writeBatch([]operation{op})
	select {
	case err := <-answered:
		if !errors.Is(err, mailbox.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("done waits for a lock that its caller holds")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestQueueCountsTheBatchThatIsWritten: the limits of what waits for the disk include what the
// writer took and could not write yet.
func TestQueueCountsTheBatchThatIsWritten(t *testing.T) {
	disk := newCrashDisk()
	disk.setFailure(errDiskFull)
	told := make(chan mailbox.Stall, 8)
	s := openLocal(t, Config{Dir: t.TempDir(), disk: disk, BytesMax: 10_000, Stalled: func(st mailbox.Stall) { told <- st }})
	first := make(chan error, 1)
	s.Append(t.Context(), "run.a", make([]byte, 8000), func(_ uint64, err error) { first <- err })
	<-told // the writer has it
	if _, err := mailbox.Put(t.Context(), s, "run.a", make([]byte, 8000)); !errors.Is(err, mailbox.ErrFull) {
		t.Errorf("two appends of 8,000 bytes wait under a limit of 10,000: %v", err)
	}
	disk.setFailure(nil)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if n := s.queue.waitingBytes(); n != 0 {
		t.Errorf("%d bytes wait after all is written", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestDiskThatFailsWritesKeepsOneSegment: each attempt begins another segment, because nobody knows
// what the last one left on the disk, and removes the last one.
func TestDiskThatFailsWritesKeepsOneSegment(t *testing.T) {
	disk := newCrashDisk()
	s := openLocal(t, Config{Dir: t.TempDir(), disk: disk})
	disk.setWriteFailure(errDiskFull)
	w := &batchWriter{Store: s}
	ops := []operation{{ctx: t.Context(), to: "run.a", data: []byte("x"), cost: 1}}
	w.prepareBatch(ops)
	for range 10 {
		if err := w.writeRecords(ops); err == nil {
			t.Fatal("the disk does not fail")
		}
	}
	names, err := disk.list("")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(numberedFiles(names, segmentPrefix)); n != 1 || len(s.active.segments) != 1 {
		t.Errorf("%d files, segments %d", n, s.active.segments)
	}
	disk.setWriteFailure(nil)
	if err := w.writeRecords(ops); err != nil {
		t.Fatal(err)
	}
	w.applyBatch(ops)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
