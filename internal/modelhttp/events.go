package modelhttp

import (
	"bytes"
	"io"
	"sync"
)

// eventReader reads the events of a stream, within the bounds of a response. Each line extends the waits of the attempt: a
// server that drips bytes without ever ending a line makes no progress.
//
// It is not tmaxmax/go-sse, which copies each event and looks at all it has of one with each read: a reply is an event
// for each token. FuzzStreamBody holds that both read the same events.
type eventReader struct {
	attempt *Attempt
	body    io.Reader
	err     error // of the body, once it has ended: io.EOF if it was read to its end

	buf     []byte // what was read and is not yet returned as lines
	scanned int    // how many bytes of buf are known to hold no end of a line
	room    []byte // the whole buffer; buf is a part of it
	total   int64  // bytes of the body
	event   int64  // bytes of the event so far
	afterCR bool   // the line before ended in \r: a \n belongs to that end
	begun   bool   // a line that was not blank came: a byte-order mark may stand only before it

	name string // of the last event that had one: the next one mostly has the same, and needs no copy of it
	data []byte // of the event so far, each line with its end
}

// eventReaders are readers whose stream is over, for their buffers.
var eventReaders = sync.Pool{New: func() any { return &eventReader{room: make([]byte, 4<<10)} }}

// reusedRoom bounds each text that a reader keeps for the next stream.
const reusedRoom = 64 << 10

func newEventReader(a *Attempt, body io.Reader) *eventReader {
	r, _ := eventReaders.Get().(*eventReader)
	*r = eventReader{attempt: a, body: body, room: r.room, buf: r.room[:0], data: r.data[:0], name: r.name}
	return r
}

// reuse lets another stream have the buffers.
func (r *eventReader) reuse() {
	if cap(r.room) <= reusedRoom && cap(r.data) <= reusedRoom && len(r.name) <= reusedRoom {
		r.attempt, r.body, r.err = nil, nil, nil
		eventReaders.Put(r)
	}
}

// next returns the next event that has data, or io.EOF when the stream is over. An event that no blank line ended is none.
func (r *eventReader) next() (Event, error) {
	name := ""
	r.data = r.data[:0]
	for {
		line, err := r.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) > 0 {
			name = r.takeField(line, name)
			continue
		}
		r.event = 0
		if len(r.data) > 1 {
			return Event{name, r.data[:len(r.data)-1]}, nil
		}
		name, r.data = "", r.data[:0] // a keep-alive
	}
}

// takeField takes a line of an event: its data, or its name, which it returns.
func (r *eventReader) takeField(line []byte, name string) string {
	if !r.begun {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	r.begun = true
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) {
	case "data":
		r.data = append(append(r.data, value...), '\n')
	case "event":
		if string(value) != r.name { // most have the name of the one before
			r.name = string(value)
		}
		return r.name
	}
	return name
}

// line returns the next line without its end, which is \n, \r or both. It is valid until the next call.
func (r *eventReader) line() ([]byte, error) {
	for {
		if r.afterCR && len(r.buf) > 0 {
			if r.afterCR = false; r.buf[0] == '\n' {
				r.buf = r.buf[1:]
			}
		}
		if i := indexLineEnd(r.buf[r.scanned:]); i >= 0 {
			end := r.scanned + i
			line := r.buf[:end]
			r.afterCR = r.buf[end] == '\r'
			r.buf, r.scanned = r.buf[end+1:], 0
			r.event += int64(len(line)) + 1
			r.attempt.sawDone = r.attempt.sawDone || isDoneLine(line)
			return line, r.checkSize(len(line))
		}
		r.scanned = len(r.buf)
		if r.err != nil {
			r.attempt.sawDone = r.attempt.sawDone || isDoneLine(r.buf) // some servers do not end their last line
			return nil, r.err
		}
		if err := r.checkSize(len(r.buf)); err != nil {
			return nil, err
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// checkSize bounds the line and its event.
func (r *eventReader) checkSize(line int) error {
	switch {
	case line > MaxLine:
		return tooLarge("a line of the response is longer than %d bytes", MaxLine)
	case r.event > MaxEvent:
		return tooLarge("an event of the response is longer than %d bytes", MaxEvent)
	}
	return nil
}

// lineWindow is how far indexLineEnd looks for one end before it looks for the other: a stream may have one of them only.
const lineWindow = 512

// indexLineEnd returns the index of the first \n or \r; -1 if there is none.
func indexLineEnd(b []byte) int {
	for from := 0; from < len(b); from += lineWindow {
		window := b[from:min(from+lineWindow, len(b))]
		i := bytes.IndexByte(window, '\n')
		if i >= 0 {
			window = window[:i]
		}
		if j := bytes.IndexByte(window, '\r'); j >= 0 {
			i = j
		}
		if i >= 0 {
			return from + i
		}
	}
	return -1
}

// doneLine is how OpenAI's streams end, without the space some servers put in it.
const doneLine = "data:[DONE]"

func isDoneLine(line []byte) bool {
	matched := 0
	for _, c := range line {
		switch {
		case c == ' ':
		case matched == len(doneLine) || c != doneLine[matched]:
			return false
		default:
			matched++
		}
	}
	return matched == len(doneLine)
}

// emptyReadsMax bounds the reads in sequence that return nothing.
const emptyReadsMax = 100

// fill reads more of the body behind what is left of it.
func (r *eventReader) fill() error {
	if left := len(r.buf); left == len(r.room) {
		r.room = append(r.room, make([]byte, len(r.room))...)
	}
	r.buf = r.room[:copy(r.room, r.buf)]
	for range emptyReadsMax {
		n, err := r.body.Read(r.room[len(r.buf):])
		if r.total += int64(n); r.total > MaxBody {
			return tooLarge("the response is longer than %d bytes", MaxBody)
		}
		arrived := r.room[len(r.buf) : len(r.buf)+n]
		if n > 0 && r.total == int64(n) || indexLineEnd(arrived) >= 0 {
			r.attempt.watch.expect(nextLine, "event", r.attempt.timeouts.Idle)
		}
		r.buf = r.room[:len(r.buf)+n]
		switch {
		case err == io.EOF:
			r.err = io.EOF
		case err != nil:
			r.err = r.attempt.ModelError(err)
		case n == 0:
			continue
		}
		return nil
	}
	return r.attempt.ModelError(io.ErrNoProgress)
}
