package client

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrCursor says that a text is not a cursor of the run.
var ErrCursor = errors.New("client: not a cursor of this run")

// position is the position of an event in its log: the i-th event of entry n.
type position struct {
	n uint64
	i uint64
}

// Positions are the newest events seen, by log: a node may send an event again, and after a change of the node the
// client requests a whole entry once more. Positions are exact where a Cursor is not: an entry may have several
// events, and an observer may have seen only the first.
type Positions map[string]position

// Advance records an event and reports whether it is new. Deltas have no
// place; a node sends them once.
func (p Positions) Advance(e Event) bool {
	if e.Seq == 0 {
		return true
	}
	at, rest, _ := strings.Cut(e.ID, "#")
	_, index, _ := strings.Cut(rest, ".")
	i, err := strconv.ParseUint(index, 10, 32)
	old, known := p[at]
	if err != nil || known && (e.Seq < old.n || e.Seq == old.n && i <= old.i) {
		return false
	}
	p[at] = position{e.Seq, i}
	return true
}

// PositionsAt returns the positions of an observer that has seen all events up to a cursor of a run.
func PositionsAt(run string, c Cursor) Positions {
	p := Positions{}
	for at, n := range c {
		if strings.HasPrefix(at, run+".") && n > 0 {
			p[at] = position{n, lastEvent}
		}
	}
	return p
}

// lastEvent is beyond the number of any event of an entry.
const lastEvent = math.MaxUint32

// Cursor is the position to continue from: the newest entries may not have arrived whole, so they
// are requested again, and Advance drops what was seen of them.
func (p Positions) Cursor() Cursor {
	c := Cursor{}
	for at, last := range p {
		c[at] = last.n - 1
	}
	return c
}

// Text is the opaque form of the positions in a run that people and programs pass on:
// ParsePositions reads it. It has a few bytes for each agent.
func (p Positions) Text(run string) string {
	raw := []byte{positionsForm}
	raw = appendText(raw, run)
	last := ""
	for _, at := range slices.Sorted(maps.Keys(p)) {
		agent, ok := strings.CutPrefix(at, run+".")
		if !ok {
			continue // an event of another run has no place here
		}
		shared := commonPrefix(last, agent)
		raw = binary.AppendUvarint(raw, uint64(shared))
		raw = appendText(raw, agent[shared:])
		raw = binary.AppendUvarint(raw, p[at].n)
		raw = binary.AppendUvarint(raw, p[at].i)
		last = agent
	}
	if len(raw) > plainCursorMax {
		raw = deflateCursor(raw)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// The first byte of the text form.
const (
	positionsForm = 1
	deflatedForm  = 2 // the rest is deflated: of a run with many agents the form would not fit the headers of a request
)

const (
	// cursorBytesMax bounds a cursor that is read: that of a run with 10,000 agents.
	cursorBytesMax = 64 << 10
	// plainCursorMax is the size from which a cursor is deflated, and inflatedCursorMax the most that is inflated.
	plainCursorMax    = 4 << 10
	inflatedCursorMax = 1 << 20
	// positionsMax bounds the logs that a cursor names, and positionsBytesMax their names together: each may share all but
	// some bytes with the one before it, so a short cursor could stand for gigabytes. Both are beyond what the cursors
	// that fit cursorBytesMax have.
	positionsMax      = 20_000
	positionsBytesMax = 2 << 20
)

func deflateCursor(raw []byte) []byte {
	var out bytes.Buffer
	out.WriteByte(deflatedForm)
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(raw)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil { // a buffer refuses nothing
		return raw
	}
	return out.Bytes()
}

// inflateCursor returns a cursor as it was before it was deflated; nil: it is none.
func inflateCursor(raw []byte) []byte {
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), inflatedCursorMax+1))
	if err != nil || len(out) > inflatedCursorMax {
		return nil
	}
	return out
}

func appendText(raw []byte, text string) []byte {
	return append(binary.AppendUvarint(raw, uint64(len(text))), text...)
}

func commonPrefix(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// ParsePositions reads what Text has made for the same run; "" is the beginning. The error is an
// ErrCursor.
func ParsePositions(run, text string) (Positions, error) {
	p := Positions{}
	if text == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(raw) > 0 && raw[0] == deflatedForm && len(text) <= cursorBytesMax {
		raw = inflateCursor(raw[1:])
	}
	if err != nil || len(text) > cursorBytesMax || len(raw) == 0 || raw[0] != positionsForm {
		return nil, fmt.Errorf("%w: %.80q", ErrCursor, text)
	}
	d := cursorReader{raw: raw[1:]}
	if of := d.text(); of != run {
		return nil, fmt.Errorf("%w: it is one of run %.80q", ErrCursor, of)
	}
	last, size := "", 0
	for len(d.raw) > 0 {
		shared := d.number()
		if shared > uint64(len(last)) || size > positionsBytesMax || len(p) == positionsMax {
			d.bad = true
			break
		}
		last = last[:shared] + d.text()
		size += len(run) + len(last)
		p[run+"."+last] = position{d.number(), d.number()}
		d.bad = d.bad || p[run+"."+last].n == 0
	}
	if d.bad {
		return nil, fmt.Errorf("%w: %.80q", ErrCursor, text)
	}
	return p, nil
}

// cursorReader reads the parts of a cursor. bad: one was missing, and the rest is empty.
type cursorReader struct {
	raw []byte
	bad bool
}

func (d *cursorReader) number() uint64 {
	v, n := binary.Uvarint(d.raw)
	if n <= 0 {
		d.raw, d.bad = nil, true
		return 0
	}
	d.raw = d.raw[n:]
	return v
}

func (d *cursorReader) text() string {
	n := d.number()
	if n > uint64(len(d.raw)) {
		d.raw, d.bad = nil, true
		return ""
	}
	text := string(d.raw[:n])
	d.raw = d.raw[n:]
	return text
}
