package httpapi

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Limits of the server. A client that exceeds one is refused or disconnected, and other clients are not affected.
const (
	// bodyBytesMax is the most bytes of a request: it must fit a message to a node.
	bodyBytesMax = 512 << 10
	// headerBytesMax is the most bytes of the headers of a request: the cursor of a large tree fits twice, in the address
	// and in Last-Event-ID.
	headerBytesMax = 160 << 10
	// ConnectionsMax is how many connections are served at once. Later ones wait in the queue of the
	// operating system.
	ConnectionsMax = 1024
	// UnprovenMax is how many connections without a token may be open: one more, and the oldest of them is closed.
	// Owners leave them this room.
	UnprovenMax = 128
	// StreamsMax is how many streams of events are served at once.
	StreamsMax = 640
	// headerTimeout is how long a connection may take to send the headers of a request, bodyTimeout the
	// whole request, idleTimeout how long it may be silent between two.
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	// replyTimeout bounds one request that is no stream, with all that its node retries.
	replyTimeout = 90 * time.Second
	// drainTimeout is how long the server reads on after it has refused a request whose body has not arrived, so that a
	// client that is still sending gets the reason and not a reset. net/http reads at most 256 KiB.
	drainTimeout = time.Second
	// closeTimeout is how long Close waits for the requests in progress.
	closeTimeout = 2 * time.Second
)

// limits are those limits that tests make smaller.
type limits struct {
	connections, unproven      int
	header, body, reply, drain time.Duration
}

var defaultLimits = limits{connections: ConnectionsMax, unproven: UnprovenMax, header: headerTimeout, body: bodyTimeout, reply: replyTimeout, drain: drainTimeout}

// limitRequest bounds the body of a request, and the times in which it must arrive and be answered, before anything else
// looks at it. A stream sets a time for each of its parts. The connection is closed after the answer, unless the request
// had a token and has arrived whole.
func limitRequest(l limits, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now, control := time.Now(), http.NewResponseController(w)
		body := &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, bodyBytesMax), w: w, control: control, arrived: r.ContentLength == 0}
		arrives := time.Time{}
		if !body.arrived {
			arrives = now.Add(l.body)
		}
		w.Header().Set("Connection", "close")
		// A connection that cannot have a deadline is one of a test.
		_ = control.SetReadDeadline(arrives)
		_ = control.SetWriteDeadline(now.Add(l.reply))
		own := r.WithContext(r.Context()) // net/http looks at the body of r to close the connection well
		own.Body = body
		next.ServeHTTP(w, own)
		if !body.arrived {
			_ = control.SetReadDeadline(time.Now().Add(l.drain))
		}
	})
}

// timedBody is the body of a request, which must arrive in time.
type timedBody struct {
	io.ReadCloser
	w       http.ResponseWriter
	control *http.ResponseController
	proven  bool // the request has a token
	arrived bool // whole
}

// Read lifts the deadline at the end of the body: later it would look as if the client had gone.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && !b.arrived {
		b.arrived = true
		_ = b.control.SetReadDeadline(time.Time{}) // see limitRequest
		b.keepConnection()
	}
	return n, err
}

// keepConnection leaves the connection open for a further request, if it may be.
func (b *timedBody) keepConnection() {
	if b.proven && b.arrived {
		b.w.Header().Del("Connection")
	}
}

// markProven marks a request that has a token.
func markProven(r *http.Request) {
	if b, ok := r.Body.(*timedBody); ok {
		b.proven = true
		b.keepConnection()
	}
}

// refuseNeedlessBody refuses a request with a body that nothing would read.
func refuseNeedlessBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.Method != http.MethodPost {
			refuseEarly(w, r, http.StatusBadRequest, "a request of the method "+r.Method+" has no body", "")
			return
		}
		next.ServeHTTP(w, r)
	})
}
