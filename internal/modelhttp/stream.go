package modelhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/troupe-run/troupe/model"
)

// Bounds on the response of a provider. A reply of 128,000 output tokens takes about 40 MB
// as one event per token.
const (
	MaxLine      = 8 << 20         // one line of the event stream
	MaxEvent     = MaxLine + 1<<20 // one event of it, with its comments
	MaxBody      = 64 << 20        // the whole event stream, after decompression
	MaxErrorBody = 64 << 10        // the body of an answer that is not a stream, and the event of an error
	// MaxElements bounds the elements of all lists of one event. An empty element takes two
	// bytes of a line and 200 of memory once it is decoded.
	MaxElements = 1 << 16
)

// What a reply whose end marker has come may still send, so that its connection can serve
// the next request: HTTP/1.1 closes a connection whose response was not read to its end.
const (
	DrainBytes = 4 << 10
	DrainTime  = 20 * time.Millisecond
)

// Event is one event of a stream.
type Event struct {
	Name string // "" if the server named none
	Data []byte // never empty; valid until the next event
}

// Stream posts a request, and passes each event of the answer that has data to take, until
// take reports that the reply is over or fails, or the stream ends. It returns the error of
// take as it is.
func (a *Attempt) Stream(to Endpoint, body []byte, take func(Event) (over bool, err error)) error {
	stream, err := a.send(to, body)
	if err != nil {
		return err
	}
	defer stream.close()
	var data []byte
	for e, err := range sse.Read(stream, &sse.ReadConfig{MaxEventSize: MaxEvent}) {
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			return &model.Error{Class: model.Undecodable, Message: fmt.Sprintf("an event of the response is longer than %d bytes", int64(MaxEvent))}
		case err != nil:
			return a.ModelError(err)
		case e.Data == "":
			continue // a keep-alive
		}
		data = append(data[:0], e.Data...)
		if hasMoreElements(data, MaxElements) {
			return &model.Error{Class: model.Undecodable, Message: fmt.Sprintf("the lists of an event of the response have more than %d elements", MaxElements)}
		}
		over, err := take(Event{e.Type, data})
		if err != nil {
			return err
		}
		if over {
			stream.drain()
			return nil
		}
	}
	return nil
}

// streamBody bounds a response body and feeds the timers line by line: a server that
// drips bytes without ever ending a line makes no progress.
type streamBody struct {
	attempt *Attempt
	rc      io.ReadCloser
	started bool
	ended   bool // the body was read to its end
	total   int64
	line    int64  // length of the line so far
	head    []byte // its first bytes, without spaces
	filled  bool   // it has a byte other than \r, which the parser takes for the end of a line
	blank   bool   // the line before it was not filled
}

// doneLine is how OpenAI's streams end, without the space some servers put in it.
const doneLine = "data:[DONE]"

// Read returns when an event has ended, or p is full. The parser looks at all it has of an
// event with each read: given a long event in small pieces, it would take quadratic time.
func (b *streamBody) Read(p []byte) (n int, err error) {
	for {
		size, err := b.rc.Read(p[n:])
		if size > 0 && !b.started {
			b.started = true
			b.attempt.watch.expect(nextLine, "event", b.attempt.timeouts.Idle)
		}
		whole, bad := b.countBytes(p[n : n+size])
		if bad != nil {
			return 0, bad
		}
		n += size
		switch {
		case err == io.EOF:
			b.endLine()
			b.ended = true
		case err != nil:
			err = b.attempt.ModelError(err)
		}
		if whole || err != nil || size == 0 || n == len(p) {
			return n, err
		}
	}
}

// countBytes counts and watches the bytes that arrived. It reports whether an event ended in
// them: a blank line came after another line.
func (b *streamBody) countBytes(p []byte) (whole bool, err error) {
	if b.total += int64(len(p)); b.total > MaxBody {
		return false, &model.Error{Class: model.Undecodable, Message: fmt.Sprintf("the response is longer than %d bytes", int64(MaxBody))}
	}
	ended := false
	for len(p) > 0 {
		part, rest, found := bytes.Cut(p, []byte{'\n'})
		b.line += int64(len(part))
		b.filled = b.filled || len(bytes.TrimLeft(part, "\r")) > 0
		for _, c := range part {
			if len(b.head) > len(doneLine) {
				break // one more than it may have
			}
			if c != ' ' {
				b.head = append(b.head, c)
			}
		}
		if found {
			whole = whole || !b.filled && !b.blank
			b.blank, ended = !b.filled, true
			b.endLine()
		}
		p = rest
	}
	if b.line > MaxLine {
		return false, &model.Error{Class: model.Undecodable, Message: fmt.Sprintf("a line of the response is longer than %d bytes", int64(MaxLine))}
	}
	if ended {
		b.attempt.watch.expect(nextLine, "event", b.attempt.timeouts.Idle)
	}
	return whole, nil
}

func (b *streamBody) endLine() {
	if string(bytes.TrimSuffix(b.head, []byte{'\r'})) == doneLine {
		b.attempt.sawDone = true
	}
	b.line, b.head, b.filled = 0, b.head[:0], false
}

// drain reads what follows the end of a reply. A server that keeps the response open costs
// DrainTime and the connection.
func (b *streamBody) drain() {
	if b.ended {
		return
	}
	timer := time.AfterFunc(DrainTime, func() { b.attempt.cancel(context.Canceled) })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, b.rc, DrainBytes) // the reply is whole, whatever comes
}

func (b *streamBody) close() {
	b.attempt.watch.stop()
	b.rc.Close()
}
