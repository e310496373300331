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
	// segmentBytes is the size of a segment of the journal. Full segments are folded. A crash leaves
	// up to segmentsMax of them to the next open, and their entries are in memory until then.
	segmentBytes = 16 << 20
	// segmentsMax is how many segments the journal may have while folds are slower than appends,
	// or fail. Then appends wait.
	segmentsMax = 8
	// sparesMax is how many folded segments are kept for reuse: to overwrite a file costs less
	// than to extend one.
	sparesMax = 1

	segmentPrefix = "journal-"
	sparePrefix   = "spare-"
	numberBase    = 16
	numberDigits  = 16
)

// journal writes the records of the newest entries.
type journal struct {
	disk   disk
	dir    string
	lazy   bool
	size   int64       // of a segment
	number uint64      // of the newest segment or spare: no number is used twice
	file   journalFile // nil: no segment is open
	offset int64       // where the next record goes
	unused bool        // the segment ended at its first write, which failed: nothing in it was acknowledged
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

func (j *journal) path(prefix string, number uint64) string {
	return filepath.Join(j.dir, segmentName(prefix, number))
}

// hasRoom reports whether the segment has room for some bytes.
func (j *journal) hasRoom(size int) bool {
	return j.file != nil && j.offset+int64(size) <= j.size
}

// begin begins a new segment.
func (j *journal) begin() error {
	if err := j.end(); err != nil {
		return err
	}
	number := j.number + 1
	path := j.path(segmentPrefix, number)
	var file journalFile
	var err error
	if n := len(j.spares); n > 0 {
		if err = j.disk.rename(j.path(sparePrefix, j.spares[n-1]), path); err == nil {
			j.spares = j.spares[:n-1]
			file, err = j.disk.reopen(path)
		}
	} else {
		file, err = j.disk.allocate(path, j.size)
	}
	if err == nil {
		err = j.disk.syncDir(j.dir)
	}
	if err != nil {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		return fmt.Errorf("begin segment %d of the journal: %w", number, err)
	}
	j.number, j.file, j.offset = number, file, 0
	return nil
}

// end ends the segment, if there is one. A lazy journal syncs it first: an entry that is missing in it
// afterwards has rotted.
func (j *journal) end() error {
	if j.file == nil {
		return nil
	}
	file := j.file
	j.file = nil
	var err error
	if j.lazy {
		err = file.Sync()
		j.unsynced = j.unsynced || err != nil
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("end segment %d of the journal: %w", j.number, err)
	}
	return nil
}

// write appends records to the segment. After an error the segment is not written any more: what
// of it is on the disk is unknown.
func (j *journal) write(records []byte) error {
	_, err := j.file.WriteAt(records, j.offset)
	if err == nil && !j.lazy {
		err = j.file.Sync()
	}
	if err != nil {
		j.unused = j.offset == 0
		return errors.Join(fmt.Errorf("write segment %d of the journal: %w", j.number, err), j.end())
	}
	j.offset += int64(len(records))
	return nil
}

// dropUnused removes the segment whose first write failed, if there is one.
func (j *journal) dropUnused() (number uint64, dropped bool, err error) {
	if !j.unused {
		return 0, false, nil
	}
	if err := j.disk.remove(j.path(segmentPrefix, j.number)); err != nil {
		return 0, false, fmt.Errorf("remove segment %d of the journal: %w", j.number, err)
	}
	j.unused = false
	return j.number, true, nil
}

// sync syncs the segment of a lazy journal.
func (j *journal) sync() error {
	if j.file == nil {
		return nil
	}
	if err := j.file.Sync(); err != nil {
		j.unsynced = true
		return errors.Join(fmt.Errorf("sync segment %d of the journal: %w", j.number, err), j.end())
	}
	return nil
}

// release removes segments whose entries are in the table, or keeps them for reuse. It returns those
// that are left after an error.
func (j *journal) release(segments []uint64) (left []uint64, err error) {
	for i, n := range segments {
		path := j.path(segmentPrefix, n)
		if len(j.spares) < sparesMax {
			err = j.disk.rename(path, j.path(sparePrefix, n))
		} else {
			err = j.disk.remove(path)
		}
		if err != nil {
			return segments[i:], fmt.Errorf("release segment %d of the journal: %w", n, err)
		}
		if len(j.spares) < sparesMax {
			j.spares = append(j.spares, n)
		}
	}
	return nil, nil
}
