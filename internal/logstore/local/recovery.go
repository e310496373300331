package local

import (
	"context"
	"fmt"
)

// recoverWAL folds the entries that the last process left in the write-ahead log, and empties it.
func (s *Store) recoverWAL(ctx context.Context) error {
	names, err := s.cfg.disk.list(s.cfg.Dir)
	if err != nil {
		return err
	}
	segments, spares := numberedFiles(names, segmentPrefix), numberedFiles(names, sparePrefix)
	s.wal = &wal{disk: s.cfg.disk, dir: s.cfg.Dir, lazy: s.cfg.Lazy, size: s.cfg.segmentBytes, spares: spares}
	for _, n := range append(spares, segments...) {
		s.wal.number = max(s.wal.number, n)
	}
	folded, used, err := s.table.meta()
	if err != nil {
		return err
	}
	s.active = newFresh()
	s.end = folded
	s.used.Store(int64(used))
	if len(segments) == 0 {
		return nil
	}
	r := &walReader{store: s, expected: folded + 1}
	for _, n := range segments {
		data, err := s.cfg.disk.read(s.wal.path(segmentPrefix, n))
		if err != nil {
			return fmt.Errorf("segment %d of the write-ahead log: %w", n, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.parseSegment(data, n)
	}
	r.applyRecords()
	// What the write-ahead log held after the last record that counts is gone for good, and its places are
	// not used again: the next recovery must not miss them.
	s.end = max(s.end, r.highest)
	s.active.through = s.end
	if err := s.table.fold(s.active); err != nil {
		return fmt.Errorf("fold the write-ahead log: %w", err)
	}
	if _, used, err = s.table.meta(); err != nil {
		return err
	}
	s.used.Store(int64(used))
	s.active = newFresh()
	_, err = s.wal.release(segments)
	return err
}

// walReader reads the segments of a write-ahead log in order.
type walReader struct {
	store    *Store
	records  []record
	synced   uint64 // everything up to this place was on the disk
	expected uint64 // place of the next record
	highest  uint64 // place of any record
}

// parseSegment finds the records of a segment. It skips what does not parse.
func (r *walReader) parseSegment(data []byte, number uint64) {
	for len(data) > 0 {
		if rec, size, ok := parseRecord(data, number); ok {
			r.records = append(r.records, rec)
			r.synced, r.highest = max(r.synced, rec.synced), max(r.highest, rec.place)
			data = data[size:]
			continue
		}
		next := nextRecord(data, number)
		if next < 0 {
			return
		}
		data = data[next:]
	}
}

// applyRecords applies the records in order. What is missing up to the place synced has rotted.
// What is missing after it was being written when the process or the machine ended: no append
// there was acknowledged, unless the write-ahead log is lazy.
func (r *walReader) applyRecords() {
	for _, rec := range r.records {
		if rec.place < r.expected {
			continue // it is in the table, or the batch was written twice
		}
		if rec.place > r.expected && r.expected <= r.synced {
			r.store.cfg.Logger.Error("entries of the write-ahead log have rotted; the logs that they belong to count as damaged",
				"from", r.expected, "through", min(rec.place-1, r.synced))
		}
		torn := rec.place > r.synced && (rec.place > max(r.expected, r.synced+1) || !rec.isWhole())
		if torn && rec.lazy {
			r.store.cfg.Logger.Warn("entries that were acknowledged before they were synced are lost", "from", rec.place)
			return // nothing after them may be seen without them
		}
		r.expected = rec.place + 1
		r.applyRecord(rec)
	}
}

// isWhole reports whether the value of a record is what was written.
func (rec record) isWhole() bool {
	if rec.kind == purges {
		_, ok := openPurge(rec.to, rec.place, rec.value)
		return ok
	}
	_, ok := openValue(rec.to, rec.place, rec.value)
	return ok
}

func (r *walReader) applyRecord(rec record) {
	l, whole := r.store.findLog(rec.to), rec.isWhole()
	switch {
	case rec.kind == purges && whole:
		before, _ := openPurge(rec.to, rec.place, rec.value)
		r.store.active.purge(rec.to, l, rec.place, before)
	case rec.kind == purges:
		r.store.cfg.Logger.Error("a purge of a log has rotted; its entries are still there", "log", rec.to)
	case !whole && rec.place > r.synced:
		// It was never acknowledged.
	case !whole:
		value := sealValue(rec.to, rec.place, entry{flags: flagLost, previous: l.last})
		l.last = rec.place
		r.store.active.add(l, rec.place, value)
		r.store.damage.report(rec.to, rec.place)
	case rec.place > r.synced && readValue(rec.value).previous > l.last:
		// It was never acknowledged, nor was the entry before it, which is missing.
	default:
		l.last = rec.place
		r.store.active.add(l, rec.place, rec.value)
	}
}
