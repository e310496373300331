package runevent

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/troupe-run/troupe/client"
)

const (
	// pageBytes is the maximum size of the events in one reply.
	pageBytes = 512 << 10
	// entryBytesMax is the size of the events of one entry past which they have no texts: a page ends with an entry, and
	// a client may send an agent many long messages that it reads in one step.
	entryBytesMax = pageBytes
	// blockBytes is about how many bytes of events are packed together, unpackedMax how many of the newest stay as they
	// are: later ones may belong before them.
	blockBytes  = 256 << 10
	unpackedMax = 2 * blockBytes
)

// mark is what a list knows of an event without its document.
type mark struct {
	log  uint32 // number of its log in the list
	size uint32
	n    uint64 // index of its entry
}

// pastEvent is one event with its sort keys.
type pastEvent struct {
	mark
	stamp int64
	raw   json.RawMessage
}

// block is a part of a list, in order; the documents are deflated.
type block struct {
	marks []mark
	data  []byte
}

// markBytes is what a mark takes in memory, openBytes what an event that is not packed takes beside its document.
const (
	markBytes = 16
	openBytes = 48
)

func (b block) bytes() int { return len(b.data) + markBytes*len(b.marks) }

// list holds the events of a run in the order in which clients receive them: in order within a log, and by time
// between logs. A run of 200,000 events has some 60 MB of documents that resemble each other, so they are deflated.
type list struct {
	names  []string // of the logs, without pools
	blocks []block
	open   []pastEvent // after those of the blocks
	packed int         // bytes of the blocks
	opened int         // bytes of open
}

func (l *list) bytes() int { return l.packed + l.opened }

// add adds events, which are sorted together with those that are not packed.
func (l *list) add(events []pastEvent) {
	for _, e := range events {
		l.opened += len(e.raw) + openBytes
	}
	l.open = append(l.open, events...)
	slices.SortStableFunc(l.open, func(a, b pastEvent) int {
		return cmp.Or(cmp.Compare(a.stamp, b.stamp), cmp.Compare(l.names[a.log], l.names[b.log]))
	})
}

// pack packs the oldest events that are not, and keeps unpackedMax bytes as they are. Of events that have more than
// bytesMax bytes when they are packed it drops the newest, and reports that.
func (l *list) pack(bytesMax int) (dropped bool, err error) {
	first := 0
	for l.opened > unpackedMax {
		end, size := first, 0
		for size < blockBytes && end < len(l.open) {
			size += len(l.open[end].raw) + openBytes
			end++
		}
		b, err := packBlock(l.open[first:end])
		if err != nil {
			return false, err
		}
		l.blocks, l.packed, l.opened, first = append(l.blocks, b), l.packed+b.bytes(), l.opened-size, end
		if l.packed > bytesMax && end < len(l.open) && l.endsEntry(end) {
			l.open, l.opened = nil, 0
			return true, nil
		}
	}
	if first > 0 {
		l.open = slices.Clone(l.open[first:])
	}
	return false, nil
}

// endsEntry reports whether the events before the i-th open one end with an entry.
func (l *list) endsEntry(i int) bool {
	return l.open[i-1].log != l.open[i].log || l.open[i-1].n != l.open[i].n
}

// dropOldest drops the oldest block, and raises floor, the cursor after which the list has all events.
func (l *list) dropOldest(floor client.Cursor) {
	for _, m := range l.blocks[0].marks {
		at := l.names[m.log]
		floor[at] = max(floor[at], m.n)
	}
	l.packed -= l.blocks[0].bytes()
	l.blocks = slices.Delete(l.blocks, 0, 1)
}

func packBlock(events []pastEvent) (b block, err error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return b, fmt.Errorf("control: pack events: %w", err)
	}
	for _, e := range events {
		if _, err := w.Write(e.raw); err != nil {
			return b, fmt.Errorf("control: pack events: %w", err)
		}
		b.marks = append(b.marks, e.mark)
	}
	if err := w.Close(); err != nil {
		return b, fmt.Errorf("control: pack events: %w", err)
	}
	b.data = bytes.Clone(out.Bytes())
	return b, nil
}

// each calls do for the events beyond a cursor, in order, until it returns false. Blocks without any are not unpacked.
func (l *list) each(from client.Cursor, do func(m mark, raw json.RawMessage) bool) error {
	seen := make([]uint64, len(l.names))
	for i, at := range l.names {
		seen[i] = from[at]
	}
	isNew := func(m mark) bool { return m.n > seen[m.log] }
	for _, b := range l.blocks {
		if !slices.ContainsFunc(b.marks, isNew) {
			continue
		}
		raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(b.data)))
		if err != nil {
			return fmt.Errorf("control: unpack events: %w", err)
		}
		for _, m := range b.marks {
			doc := raw[:m.size:m.size]
			raw = raw[m.size:]
			if isNew(m) && !do(m, doc) {
				return nil
			}
		}
	}
	for _, e := range l.open {
		if isNew(e.mark) && !do(e.mark, e.raw) {
			return nil
		}
	}
	return nil
}

// page returns the events after a cursor that fit one reply, and ends with an entry.
func (l *list) page(from client.Cursor) (page client.EventsPage, err error) {
	page = client.EventsPage{Events: []json.RawMessage{}, Cursor: client.Cursor{}}
	size, last := 0, mark{}
	err = l.each(from, func(m mark, raw json.RawMessage) bool {
		size += len(raw)
		if size > pageBytes && len(page.Events) > 0 && (m.log != last.log || m.n != last.n) {
			page.More = true
			return false
		}
		page.Events = append(page.Events, raw)
		page.Cursor[l.names[m.log]] = m.n
		last = m
		return true
	})
	return page, err
}
