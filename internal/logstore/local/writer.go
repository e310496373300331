package local

import (
	"math"
	"slices"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

const (
	// batchEntriesMax and batchBytesMax limit what is written with one sync.
	batchEntriesMax = 4096
	batchBytesMax   = 4 << 20
	// writePause is the pause before a batch that could not be written is written again.
	writePause = 250 * time.Millisecond
)

// runWriter writes what waits, until Close.
func (s *Store) runWriter() {
	w := &batchWriter{Store: s, synced: s.lastVisible()} // which Open has moved to the table
	batchBytes := int(min(batchBytesMax, s.cfg.segmentBytes/2))
	defer close(s.deliveries)
	defer close(s.folds)
	for {
		batch := s.batches.Get().(*[]operation)
		*batch = s.queue.take(*batch)
		if *batch == nil {
			return
		}
		for rest := *batch; len(rest) > 0; {
			n := batchLength(rest, batchBytes)
			bytes := uint64(0)
			for i := range rest[:n] {
				bytes += rest[i].cost
			}
			w.writeBatch(rest[:n])
			s.queue.release(bytes)
			s.deliver(delivery{ops: rest[:n], whole: batch, last: n == len(rest)})
			rest = rest[n:]
		}
	}
}

// batchLength is how many operations go into the next batch.
func batchLength(ops []operation, bytesMax int) int {
	bytes := 0
	for i, op := range ops {
		if bytes += recordBytes(op.to, valueBytes+len(op.data)); i == batchEntriesMax || i > 0 && bytes > bytesMax {
			return i
		}
	}
	return len(ops)
}

// batchWriter is the goroutine that writes the write-ahead log.
type batchWriter struct {
	*Store
	place  uint64 // of the newest record
	synced uint64 // everything up to this place is on the disk
	doubt  uint64 // whether everything up to this place is on the disk is unknown until it is folded; 0: no doubt
	buffer []byte
}

// writeBatch writes operations with one sync, and has them answered.
func (w *batchWriter) writeBatch(ops []operation) {
	size := 0
	for i := range ops {
		size += recordBytes(ops[i].to, valueBytes+len(ops[i].data))
	}
	if !w.persist(ops, func() error { return w.makeRoom(size) }) {
		return
	}
	for i, err := range w.prepareBatch(ops) { // without mu: done may read the Store
		ops[i].answer(0, err)
	}
	if !w.persist(ops, func() error { return w.writeRecords(ops) }) {
		return
	}
	w.health.noteStored()
	w.applyBatch(ops)
}

// persist repeats a step until it succeeds. It returns false once the Store is closed: then all
// operations are answered.
func (w *batchWriter) persist(ops []operation, step func() error) bool {
	for {
		err := step()
		if err == nil {
			return true
		}
		if !w.isClosing() {
			w.cfg.Logger.Debug("the write-ahead log of the logs cannot be written yet", "error", err)
			w.health.noteFailed(ops[0].to, w.countWaiting(ops), err)
		}
		if !w.awaitRetry(ops) {
			return false
		}
	}
}

// makeRoom begins another segment if the present one has no room for some bytes. Then the entries
// of the segments before it can be folded.
func (w *batchWriter) makeRoom(size int) error {
	if w.wal.hasRoom(size) {
		return nil
	}
	if err := w.awaitFolds(); err != nil {
		return err
	}
	return w.beginSegment()
}

// beginSegment begins another segment.
func (w *batchWriter) beginSegment() error {
	if err := w.wal.begin(); err != nil {
		return err
	}
	w.noteSynced(w.end) // the segment before it was synced when it ended
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active.segments = append(w.active.segments, w.wal.number)
	return nil
}

// dropUnusedSegment removes the segment that could not be written if it holds nothing but this batch:
// otherwise each attempt on a disk that fails would leave a file.
func (w *batchWriter) dropUnusedSegment() error {
	number, dropped, err := w.wal.dropUnused()
	if !dropped {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active.segments = slices.DeleteFunc(w.active.segments, func(n uint64) bool { return n == number })
	return nil
}

// prepareBatch gives each operation its place and value, and returns those that get none, with the reason: their
// context has ended, or they are imported into a log that has changed.
func (w *batchWriter) prepareBatch(ops []operation) (refused map[int]error) {
	at := w.cfg.Now().UnixMilli()
	refuse := func(i int, err error) {
		if refused == nil {
			refused = map[int]error{}
		}
		refused[i] = err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.place = w.end
	for i := range ops {
		op := &ops[i]
		switch {
		case op.syncs, op.answered:
		case op.ctx.Err() != nil:
			op.imports.breakOff()
			refuse(i, canceledError(op))
		case !op.imports.follows(w.findLog(op.to)):
			op.imports.breakOff()
			refuse(i, mailbox.ErrLogChanged)
		default:
			w.place++
			op.place, op.log = w.place, w.findLog(op.to)
			if op.purges {
				if op.before == 0 {
					op.before = math.MaxUint64
				}
				op.before = min(op.before, op.place)
				op.value = sealPurge(op.to, op.place, op.before)
				continue
			}
			e := entry{at: at, previous: op.log.last, data: op.data}
			if op.imports != nil {
				e.at, e.flags = op.at, flagImported
				op.imports.newest = op.place
			}
			op.value = sealValue(op.to, op.place, e)
			op.log.last = op.place
		}
	}
	return refused
}

// findLog returns the fresh part of a log, and begins it if there is none. mu is held.
func (s *Store) findLog(at mailbox.Address) *freshLog {
	if l := s.active.logs[at]; l != nil {
		return l
	}
	l := &freshLog{}
	if s.frozen != nil && s.frozen.logs[at] != nil {
		l.last, l.older = s.frozen.logs[at].last, true
	} else if r, ok, err := s.table.row(at); ok || err != nil {
		l.last, l.older = r.last, true // of a damaged table the reads say so
	}
	s.active.logs[at] = l
	return l
}

// writeRecords writes the records of a batch to a segment with room for them.
func (w *batchWriter) writeRecords(ops []operation) error {
	size := 0
	for i := range ops {
		if ops[i].value != nil {
			size += recordBytes(ops[i].to, len(ops[i].value))
		}
	}
	if size > 0 && !w.wal.hasRoom(size) {
		if err := w.dropUnusedSegment(); err != nil {
			return err
		}
		if err := w.beginSegment(); err != nil {
			return err
		}
	}
	w.buffer = w.buffer[:0]
	for i := range ops {
		op := &ops[i]
		if op.value == nil {
			continue
		}
		kind := appends
		if op.purges {
			kind = purges
		}
		w.buffer = appendRecord(w.buffer, w.wal.number,
			record{kind: kind, lazy: w.cfg.Lazy, to: op.to, place: op.place, synced: w.synced, value: op.value})
	}
	if len(w.buffer) > 0 {
		if err := w.wal.write(w.buffer); err != nil {
			return err
		}
	}
	if wantsSync(ops) {
		if err := w.wal.sync(); err != nil {
			return err
		}
	}
	if !w.cfg.Lazy || wantsSync(ops) {
		w.noteSynced(w.place)
	}
	return nil
}

// noteSynced notes that the segments up to a place were synced. That says nothing of a segment whose sync
// failed before: its entries are safe once they are in the table.
func (w *batchWriter) noteSynced(place uint64) {
	if w.wal.unsynced {
		w.wal.unsynced, w.doubt = false, w.end
	}
	if w.doubt > 0 {
		if folded, _, err := w.table.meta(); err != nil || folded < w.doubt { // of a damaged table the reads say so
			return
		}
		w.doubt = 0
	}
	w.synced = place
}

func wantsSync(ops []operation) bool {
	for i := range ops {
		if ops[i].syncs {
			return true
		}
	}
	return false
}

// applyBatch makes a batch visible to readers.
func (w *batchWriter) applyBatch(ops []operation) {
	used := int64(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range ops {
		op := &ops[i]
		switch {
		case op.value == nil:
			continue
		case op.purges:
			freed, err := w.bytesBefore(op.to, op.before)
			if err != nil {
				w.cfg.Logger.Error("the bytes of a purged log are not known", "log", op.to, "error", err)
			}
			used -= int64(freed + w.active.purge(op.to, op.log, op.place, op.before))
		default:
			w.active.add(op.log, op.place, op.value)
			used += int64(op.cost)
		}
		op.stored = true
	}
	w.end = w.place
	w.used.Add(used)
}

// awaitRetry waits before a batch is written again, and answers operations whose context has
// ended meanwhile. It returns false once the Store is closed: then all are answered.
func (w *batchWriter) awaitRetry(ops []operation) bool {
	pause := time.NewTimer(writePause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-w.closing:
		for i := range ops {
			ops[i].answer(0, mailbox.ErrClosed)
		}
		return false
	}
	for i := range ops {
		// Its record stays in the batch: it may be on the disk already.
		if op := &ops[i]; op.ctx.Err() != nil {
			op.answer(0, canceledError(op))
		}
	}
	canceled := w.queue.takeCanceled()
	for i := range canceled {
		canceled[i].answer(0, canceledError(&canceled[i]))
	}
	return true
}

func (w *batchWriter) countWaiting(ops []operation) int {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	return len(ops) + len(w.queue.ops)
}
