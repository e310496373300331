package modelhttp

import (
	"context"
	"fmt"
	"io"
	"time"

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
	response, err := a.send(to, body)
	if err != nil {
		return err
	}
	defer func() {
		a.watch.stop()
		response.Close()
	}()
	r := newEventReader(a, response)
	defer r.reuse()
	for {
		e, err := r.next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case hasMoreElements(e.Data, MaxElements):
			return tooLarge("the lists of an event of the response have more than %d elements", MaxElements)
		}
		over, err := take(e)
		if err != nil {
			return err
		}
		if over {
			a.drain(r)
			return nil
		}
	}
}

// tooLarge is the error of a response beyond a bound.
func tooLarge(format string, bound int64) error {
	return &model.Error{Class: model.Undecodable, Message: fmt.Sprintf(format, bound)}
}

// drain reads what follows the end of a reply. A server that keeps the response open costs
// DrainTime and the connection.
func (a *Attempt) drain(r *eventReader) {
	if r.err == io.EOF {
		return
	}
	timer := time.AfterFunc(DrainTime, func() { a.cancel(context.Canceled) })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, r.body, DrainBytes) // the reply is whole, whatever comes
}
