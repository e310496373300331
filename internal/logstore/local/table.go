package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/troupe-run/troupe/mailbox"
)

const (
	tableName = "logs.db"
	// keyEnd ends the address in a key, so that the keys of one log lie together.
	keyEnd   = 0
	keyBytes = 1 + 8 // of a key after the address
	rowBytes = sumBytes + 4*8
	// tableFill is how full the pages of the table become: logs grow at their ends.
	tableFill = 0.9
	// lockTimeout is how long openTable waits for the lock of the file. The caller owns the
	// directory, so no other process should hold it.
	lockTimeout = 5 * time.Second
	tableForm   = 1
	// tableMapBytes is how much of the file is mapped from the start. bbolt maps a file that has
	// outgrown its mapping anew in the middle of a fold, and then copies every page that the fold
	// has read. The mapping takes addresses, no memory.
	tableMapBytes = 256 << 20
)

// mapBytes is tableMapBytes, where mapping more than the file has does not grow the file and
// addresses are not scarce.
func mapBytes() int {
	if runtime.GOOS == "windows" || math.MaxInt == math.MaxInt32 {
		return 0
	}
	return tableMapBytes
}

// ErrDamaged says that the table cannot be read where a log is.
var ErrDamaged = errors.New("local: the table of the logs is damaged")

// The buckets of the table, and the keys of the last one.
var (
	entriesBucket = []byte("entries") // address, keyEnd, place: value
	rowsBucket    = []byte("logs")    // address: row
	metaBucket    = []byte("meta")

	formKey   = []byte("form")
	foldedKey = []byte("folded") // the place up to which the write-ahead log is in the table
	usedKey   = []byte("used")   // bytes of all entries
)

// row is what the table knows about a log without its entries.
type row struct {
	entries uint64
	last    uint64 // place of the newest entry
	bytes   uint64
	purged  uint64 // entries with smaller places were removed
}

// table is the B+tree file.
type table struct{ db *bbolt.DB }

func openTable(path string) (t *table, err error) {
	t = &table{}
	err = guardTable(func() error {
		t.db, err = bbolt.Open(path, fileMode, &bbolt.Options{FreelistType: bbolt.FreelistMapType, Timeout: lockTimeout, InitialMmapSize: mapBytes(), NoStatistics: true})
		if err != nil {
			return fmt.Errorf("table %s: %w", path, err)
		}
		return t.db.Update(func(tx *bbolt.Tx) error {
			for _, name := range [][]byte{entriesBucket, rowsBucket, metaBucket} {
				if _, err := tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			switch form := metaNumber(tx, formKey); form {
			case 0:
				return putMeta(tx, formKey, tableForm)
			case tableForm:
				return nil
			default:
				return fmt.Errorf("table %s has form %d, and this program knows %d: a newer version made it; use that one", path, form, tableForm)
			}
		})
	})
	if err != nil && t.db != nil {
		err = errors.Join(err, t.db.Close())
	}
	return t, err
}

func (t *table) close() error { return guardTable(t.db.Close) }

// guardTable runs a function on the table. Where the file has rotted, the library panics, or reads
// outside of the file.
func guardTable(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return do()
}

func metaNumber(tx *bbolt.Tx, key []byte) uint64 {
	v := tx.Bucket(metaBucket).Get(key)
	if len(v) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

func putMeta(tx *bbolt.Tx, key []byte, n uint64) error {
	return tx.Bucket(metaBucket).Put(key, binary.BigEndian.AppendUint64(nil, n))
}

// entryKey is the key of an entry, prefix the beginning of all keys of a log.
func entryKey(at mailbox.Address, place uint64) []byte {
	k := make([]byte, 0, len(at)+keyBytes)
	k = append(append(k, at...), keyEnd)
	return binary.BigEndian.AppendUint64(k, place)
}

func placeOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// isOf reports whether a key is one of a log.
func isOf(key []byte, at mailbox.Address) bool {
	return len(key) == len(at)+keyBytes && string(key[:len(at)]) == string(at) && key[len(at)] == keyEnd
}

// meta returns the numbers of the table as of its last fold.
func (t *table) meta() (folded, used uint64, err error) {
	err = t.view(func(tx *bbolt.Tx) error {
		folded, used = metaNumber(tx, foldedKey), metaNumber(tx, usedKey)
		return nil
	})
	return folded, used, err
}

func (t *table) view(do func(*bbolt.Tx) error) error {
	return guardTable(func() error { return t.db.View(do) })
}

func encodeRow(at mailbox.Address, r row) []byte {
	v := make([]byte, sumBytes, rowBytes)
	for _, n := range []uint64{r.entries, r.last, r.bytes, r.purged} {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	binary.BigEndian.PutUint32(v, sumOfRow(at, v))
	return v
}

func sumOfRow(at mailbox.Address, v []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(at), castagnoli), castagnoli, v[sumBytes:])
}

// readRow returns the row of a log; not ok: the table has no entry of it. A row that has rotted is
// made anew from the entries.
func readRow(tx *bbolt.Tx, at mailbox.Address) (r row, ok bool) {
	v := tx.Bucket(rowsBucket).Get([]byte(at))
	if v == nil {
		return row{}, false
	}
	if len(v) == rowBytes && binary.BigEndian.Uint32(v) == sumOfRow(at, v) {
		return row{entries: binary.BigEndian.Uint64(v[sumBytes:]), last: binary.BigEndian.Uint64(v[sumBytes+8:]),
			bytes: binary.BigEndian.Uint64(v[sumBytes+16:]), purged: binary.BigEndian.Uint64(v[sumBytes+24:])}, true
	}
	c := tx.Bucket(entriesBucket).Cursor()
	for k, v := c.Seek(entryKey(at, 0)); isOf(k, at); k, v = c.Next() {
		e, good := openValue(at, placeOf(k), v)
		if r.entries++; r.entries == 1 && good {
			r.purged = e.previous + 1
		}
		r.last = placeOf(k)
		r.bytes += entryCost(at, len(v)-valueBytes)
	}
	return r, r.entries > 0
}

// row returns the row of a log.
func (t *table) row(at mailbox.Address) (r row, ok bool, err error) {
	err = t.view(func(tx *bbolt.Tx) error {
		r, ok = readRow(tx, at)
		return nil
	})
	return r, ok, err
}

// fold puts fresh entries into the table and removes what was purged, in one transaction.
func (t *table) fold(f *fresh) error {
	return guardTable(func() error {
		return t.db.Update(func(tx *bbolt.Tx) error {
			if metaNumber(tx, foldedKey) >= f.through {
				return nil
			}
			tx.Bucket(entriesBucket).FillPercent = tableFill
			used := int64(metaNumber(tx, usedKey))
			for _, at := range slices.Sorted(maps.Keys(f.logs)) {
				change, err := foldLog(tx, at, f.logs[at])
				if err != nil {
					return fmt.Errorf("log %s: %w", at, err)
				}
				used += change
			}
			return errors.Join(putMeta(tx, foldedKey, f.through), putMeta(tx, usedKey, uint64(max(used, 0))))
		})
	})
}

// foldLog folds one log; change is the change of its bytes.
func foldLog(tx *bbolt.Tx, at mailbox.Address, l *freshLog) (change int64, err error) {
	if len(l.entries) == 0 && l.purged == 0 {
		return 0, nil
	}
	r, ok := readRow(tx, at)
	before, entries := int64(r.bytes), tx.Bucket(entriesBucket)
	if ok && l.purged > 0 {
		for _, key := range keysBefore(tx, at, l.purged) {
			r.entries--
			r.bytes -= entryCost(at, len(entries.Get(key))-valueBytes)
			if err := entries.Delete(key); err != nil {
				return 0, err
			}
		}
	}
	r.purged = max(r.purged, l.purged)
	for _, e := range l.entries {
		if r.entries == 0 { // nothing is left of what was before it
			r.purged = max(r.purged, readValue(e.value).previous+1)
		}
		if err := entries.Put(entryKey(at, e.place), e.value); err != nil {
			return 0, err
		}
		r.entries++
		r.last = e.place
		r.bytes += entryCost(at, len(e.value)-valueBytes)
	}
	if r.entries == 0 {
		return -before, tx.Bucket(rowsBucket).Delete([]byte(at))
	}
	return int64(r.bytes) - before, tx.Bucket(rowsBucket).Put([]byte(at), encodeRow(at, r))
}

// keysBefore returns copies of the keys of a log with smaller places.
func keysBefore(tx *bbolt.Tx, at mailbox.Address, place uint64) (keys [][]byte) {
	c := tx.Bucket(entriesBucket).Cursor()
	for k, _ := c.Seek(entryKey(at, 0)); isOf(k, at) && placeOf(k) < place; k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// bytesBetween is how many bytes the entries of a log with places in [from, before) have.
func bytesBetween(tx *bbolt.Tx, at mailbox.Address, from, before uint64) (n uint64) {
	r, ok := readRow(tx, at)
	if !ok || from <= r.purged && before > r.last {
		return r.bytes
	}
	c := tx.Bucket(entriesBucket).Cursor()
	for k, v := c.Seek(entryKey(at, from)); isOf(k, at) && placeOf(k) < before; k, v = c.Next() {
		n += entryCost(at, len(v)-valueBytes)
	}
	return n
}
