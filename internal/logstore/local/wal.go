package local

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// segmentBytes is the size of a segment of the write-ahead log. Full segments are folded. A crash leaves
	// up to segmentsMax of them to the next open, and their entries are in memory until then.
	segmentBytes = 16 << 20
	// segmentsMax is how many segments the write-ahead log may have while folds are slower than appends,
	// or fail. Then appends wait.
	segmentsMax = 8
	// sparesMax is how many folded segments are kept for reuse: to overwrite a file costs less
	// than to extend one.
	sparesMax = 1

	segmentPrefix = "journal-" // as in form 1
	sparePrefix   = "spare-"
	numberBase    = 16
	numberDigits  = 16
)

// wal is the write-ahead log of a store: it writes the records of the newest entries.
type wal struct {
	disk   disk
	dir    string
	lazy   bool
	size   int64   // of a segment
	number uint64  // of the newest segment or spare: no number is used twice
	file   walFile // nil: no segment is open
	offset int64   // where the next record goes
	unused bool    // the segment ended at its first write, which failed: nothing in it was acknowledged
	// unsynced says that a sync has failed since the flag was last taken. What of its segment is on the
	// disk is unknown for good: a repeated sync may succeed without having written it.
	unsynced bool
	spares   []uint64
}

// segmentName is the name of the file of a segment, or of a spare.
func segmentName(prefix string, number uint64) string {
	return fmt.Sprintf("%s%0*x", prefix, numberDigits, number)
}

// numberedFiles lists the numbers of the files of a directory whose names have a prefix, sorted.
func numberedFiles(names []string, prefix string) (numbers []uint64) {
	for _, name := range names {
		text, ok := strings.CutPrefix(name, prefix)
		n, err := strconv.ParseUint(text, numberBase, 64)
		if ok && err == nil && segmentName(prefix, n) == name {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

func (l *wal) path(prefix string, number uint64) string {
	return filepath.Join(l.dir, segmentName(prefix, number))
}

// hasRoom reports whether the segment has room for some bytes.
func (l *wal) hasRoom(size int) bool {
	return l.file != nil && l.offset+int64(size) <= l.size
}

// begin begins a new segment.
func (l *wal) begin() error {
	if err := l.end(); err != nil {
		return err
	}
	number := l.number + 1
	path := l.path(segmentPrefix, number)
	var file walFile
	var err error
	if n := len(l.spares); n > 0 {
		if err = l.disk.rename(l.path(sparePrefix, l.spares[n-1]), path); err == nil {
			l.spares = l.spares[:n-1]
			file, err = l.disk.reopen(path)
		}
	} else {
		file, err = l.disk.allocate(path, l.size)
	}
	if err == nil {
		err = l.disk.syncDir(l.dir)
	}
	if err != nil {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		return fmt.Errorf("begin segment %d of the write-ahead log: %w", number, err)
	}
	l.number, l.file, l.offset = number, file, 0
	return nil
}

// end ends the segment, if there is one. A lazy write-ahead log syncs it first: an entry that is missing in it
// afterwards has rotted.
func (l *wal) end() error {
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	var err error
	if l.lazy {
		err = file.Sync()
		l.unsynced = l.unsynced || err != nil
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("end segment %d of the write-ahead log: %w", l.number, err)
	}
	return nil
}

// write appends records to the segment. After an error the segment is not written any more: what
// of it is on the disk is unknown.
func (l *wal) write(records []byte) error {
	_, err := l.file.WriteAt(records, l.offset)
	if err == nil && !l.lazy {
		err = l.file.Sync()
	}
	if err != nil {
		l.unused = l.offset == 0
		return errors.Join(fmt.Errorf("write segment %d of the write-ahead log: %w", l.number, err), l.end())
	}
	l.offset += int64(len(records))
	return nil
}

// dropUnused removes the segment whose first write failed, if there is one.
func (l *wal) dropUnused() (number uint64, dropped bool, err error) {
	if !l.unused {
		return 0, false, nil
	}
	if err := l.disk.remove(l.path(segmentPrefix, l.number)); err != nil {
		return 0, false, fmt.Errorf("remove segment %d of the write-ahead log: %w", l.number, err)
	}
	l.unused = false
	return l.number, true, nil
}

// sync syncs the segment of a lazy write-ahead log.
func (l *wal) sync() error {
	if l.file == nil {
		return nil
	}
	if err := l.file.Sync(); err != nil {
		l.unsynced = true
		return errors.Join(fmt.Errorf("sync segment %d of the write-ahead log: %w", l.number, err), l.end())
	}
	return nil
}

// release removes segments whose entries are in the table, or keeps them for reuse. It returns those
// that are left after an error.
func (l *wal) release(segments []uint64) (left []uint64, err error) {
	for i, n := range segments {
		path := l.path(segmentPrefix, n)
		if len(l.spares) < sparesMax {
			err = l.disk.rename(path, l.path(sparePrefix, n))
		} else {
			err = l.disk.remove(path)
		}
		if err != nil {
			return segments[i:], fmt.Errorf("release segment %d of the write-ahead log: %w", n, err)
		}
		if len(l.spares) < sparesMax {
			l.spares = append(l.spares, n)
		}
	}
	return nil, nil
}
