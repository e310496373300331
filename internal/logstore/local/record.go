package local

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/troupe-run/troupe/mailbox"
)

// The stored form of an entry is a value: a checksum, flags, the stamp, the place of the entry
// before it in its log, and the data. The table keeps a value under its address and place. The
// write-ahead log wraps it in a record that also names these two.
const (
	sumBytes   = 4
	valueBytes = sumBytes + 1 + 8 + 8 // of a value before the data

	// flagLost marks an entry whose data was lost.
	flagLost = 1
	// flagImported marks an entry whose stamp is that of another store.
	flagImported = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entry is what a value holds.
type entry struct {
	flags    byte
	at       int64
	previous uint64
	data     []byte
}

// sealValue makes the value of an entry. It copies the data.
func sealValue(to mailbox.Address, place uint64, e entry) []byte {
	v := make([]byte, valueBytes, valueBytes+len(e.data))
	v[sumBytes] = e.flags
	binary.LittleEndian.PutUint64(v[sumBytes+1:], uint64(e.at))
	binary.LittleEndian.PutUint64(v[sumBytes+9:], e.previous)
	v = append(v, e.data...)
	binary.LittleEndian.PutUint32(v, sumOfValue(to, place, v))
	return v
}

// sumOfValue is the checksum of a value at an address and place.
func sumOfValue(to mailbox.Address, place uint64, v []byte) uint32 {
	head := sumHeads.Get().(*[AddressBytesMax + 8]byte) // it would escape to the heap for each entry
	n := copy(head[:], to)
	binary.LittleEndian.PutUint64(head[n:], place)
	sum := crc32.Update(crc32.Update(0, castagnoli, head[:n+8]), castagnoli, v[sumBytes:])
	sumHeads.Put(head)
	return sum
}

// sumHeads are buffers for the parts of a checksum other than the value.
var sumHeads = sync.Pool{New: func() any { return new([AddressBytesMax + 8]byte) }}

// openValue reads a value; not ok: it is not what was written there.
func openValue(to mailbox.Address, place uint64, v []byte) (e entry, ok bool) {
	if len(v) < valueBytes || len(to) > AddressBytesMax || binary.LittleEndian.Uint32(v) != sumOfValue(to, place, v) {
		return entry{}, false
	}
	return readValue(v), true
}

// readValue reads a value without its checksum: one that this process made.
func readValue(v []byte) entry {
	return entry{flags: v[sumBytes], at: int64(binary.LittleEndian.Uint64(v[sumBytes+1:])),
		previous: binary.LittleEndian.Uint64(v[sumBytes+9:]), data: v[valueBytes:]}
}

// entryCost is how many bytes an entry counts for the limit of the store.
func entryCost(to mailbox.Address, data int) uint64 {
	return uint64(len(to) + keyBytes + valueBytes + data)
}

// Records of the write-ahead log. Each begins with recordMagic and a checksum of its head and address,
// which also covers the number of the segment: a reused file still holds the records of its
// earlier use.
const (
	recordMagic = "\xf7trR"
	headBytes   = 40
)

// recordKind is what a record does to its log.
type recordKind byte

const (
	appends recordKind = 1 + iota // adds an entry
	purges                        // removes the entries before the place in its value
)

// record is one record of the write-ahead log.
type record struct {
	kind  recordKind
	lazy  bool // it was acknowledged before it was synced
	to    mailbox.Address
	place uint64
	// synced is a place up to which everything was on the disk when the record was written: what
	// is missing there has rotted, what is missing after it may never have been stored.
	synced uint64
	value  []byte
}

// appendRecord appends the stored form of a record to b.
func appendRecord(b []byte, segment uint64, r record) []byte {
	start := len(b)
	b = append(b, recordMagic...)
	b = append(b, make([]byte, headBytes-len(recordMagic))...)
	h := b[start:]
	binary.LittleEndian.PutUint32(h[8:], uint32(len(r.value)))
	binary.LittleEndian.PutUint16(h[12:], uint16(len(r.to)))
	h[14] = byte(r.kind)
	if r.lazy {
		h[15] = 1
	}
	binary.LittleEndian.PutUint64(h[16:], r.place)
	binary.LittleEndian.PutUint64(h[24:], r.synced)
	binary.LittleEndian.PutUint64(h[32:], segment)
	b = append(b, r.to...)
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(b[start+8:], castagnoli))
	return append(b, r.value...)
}

// recordBytes is the length of the stored form of a record.
func recordBytes(to mailbox.Address, value int) int { return headBytes + len(to) + value }

// parseRecord reads the record at the beginning of b. The value is not checked yet.
func parseRecord(b []byte, segment uint64) (r record, size int, ok bool) {
	if len(b) < headBytes || string(b[:len(recordMagic)]) != recordMagic || binary.LittleEndian.Uint64(b[32:]) != segment {
		return record{}, 0, false
	}
	value, address := int(binary.LittleEndian.Uint32(b[8:])), int(binary.LittleEndian.Uint16(b[12:]))
	size = headBytes + address + value
	if address == 0 || address > AddressBytesMax || value < sumBytes || value > valueBytes+mailbox.EntryBytesMax || size > len(b) ||
		binary.LittleEndian.Uint32(b[4:]) != crc32.Checksum(b[8:headBytes+address], castagnoli) {
		return record{}, 0, false
	}
	return record{kind: recordKind(b[14]), lazy: b[15] != 0, to: mailbox.Address(b[headBytes : headBytes+address]),
		place: binary.LittleEndian.Uint64(b[16:]), synced: binary.LittleEndian.Uint64(b[24:]), value: b[headBytes+address : size]}, size, true
}

// nextRecord finds the first record in b after its beginning; -1: there is none.
func nextRecord(b []byte, segment uint64) int {
	for at := 1; at < len(b); at++ {
		i := bytes.Index(b[at:], []byte(recordMagic))
		if i < 0 {
			return -1
		}
		at += i
		if _, _, ok := parseRecord(b[at:], segment); ok {
			return at
		}
	}
	return -1
}

// sealPurge makes the value of a record that purges.
func sealPurge(to mailbox.Address, place, before uint64) []byte {
	v := binary.LittleEndian.AppendUint64(make([]byte, sumBytes), before)
	binary.LittleEndian.PutUint32(v, sumOfValue(to, place, v))
	return v
}

// openPurge reads the value of a record that purges.
func openPurge(to mailbox.Address, place uint64, v []byte) (before uint64, ok bool) {
	if len(v) != sumBytes+8 || binary.LittleEndian.Uint32(v) != sumOfValue(to, place, v) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(v[sumBytes:]), true
}
