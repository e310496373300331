package local

import (
	"errors"
	"fmt"
	"time"
)

// foldPause is the pause before a fold that failed is repeated.
const foldPause = time.Second

// errFolds says that the write-ahead log is full, because its entries cannot be moved to the table.
var errFolds = errors.New("the write-ahead log is full and cannot be moved to the table")

// awaitFolds starts a fold of the fresh entries, unless one is under way, and waits while the write-ahead log
// has too many segments. The writer calls it at the end of a segment.
func (w *batchWriter) awaitFolds() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		var err error
		if w.released, err = w.wal.release(w.released); err != nil {
			return err
		}
		if w.frozen == nil && len(w.active.segments) > 0 {
			w.frozen, w.active = w.active, newFresh()
			w.folds <- w.frozen
		}
		segments := len(w.active.segments)
		if w.frozen != nil {
			segments += len(w.frozen.segments)
		}
		switch {
		case segments < segmentsMax:
			return nil
		case w.foldErr != nil:
			return fmt.Errorf("%w: %w", errFolds, w.foldErr)
		case w.isClosing():
			return errFolds
		}
		w.folded.Wait()
	}
}

// runFolds folds until the writer has ended.
func (s *Store) runFolds() {
	for f := range s.folds {
		for !s.isClosing() && !s.foldFrozen(f) {
			pause := time.NewTimer(foldPause)
			select {
			case <-pause.C:
			case <-s.closing:
				pause.Stop()
			}
		}
	}
}

// foldFrozen folds the frozen entries once, and reports whether they are in the table.
func (s *Store) foldFrozen(f *fresh) bool {
	err := s.table.fold(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foldErr = err
	if err == nil {
		s.frozen = nil
		s.released = append(s.released, f.segments...)
	} else {
		s.cfg.Logger.Warn("cannot move write-ahead log entries to the table; retrying", "error", err)
	}
	s.folded.Broadcast()
	return err == nil
}

func (s *Store) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// closeWAL folds the remaining entries, so that the next open has nothing to do. If that fails, the
// entries stay in the write-ahead log for the next open. All goroutines have ended.
func (s *Store) closeWAL() error {
	err := s.wal.end()
	for _, f := range []*fresh{s.frozen, s.active} {
		if f == nil || err != nil {
			continue
		}
		if err = s.table.fold(f); err == nil {
			s.released = append(s.released, f.segments...)
		}
	}
	if err == nil {
		_, err = s.wal.release(s.released)
	}
	if err != nil {
		s.cfg.Logger.Warn("entries stay in the write-ahead log; the next start moves them to the table", "error", err)
	}
	return nil
}

// runSyncs has the write-ahead log of a lazy Store synced now and then.
func (s *Store) runSyncs() {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.closing:
			return
		}
		if s.queue.push(syncOperation()) != nil {
			return // it is closed
		}
	}
}
