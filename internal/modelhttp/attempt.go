// Package modelhttp is the wire code that all provider adapters share: one guarded HTTP
// attempt with an event stream as its answer, the classes of its errors, the assembly of
// streamed tool calls, and the rules that a transcript must satisfy before it is sent.
package modelhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/troupe-run/troupe/model"
)

// Bounds on the response of a provider. A reply of 128,000 output tokens takes about 40 MB
// as one event per token.
const (
	MaxLine      = 8 << 20  // one line of the event stream
	MaxBody      = 64 << 20 // the whole event stream, after decompression
	MaxErrorBody = 64 << 10 // the body of an answer that is not a stream
)

// Defaults of Timeouts.
const (
	DefaultHeaders   = 60 * time.Second
	DefaultFirstByte = 120 * time.Second
	DefaultIdle      = 90 * time.Second
	DefaultTotal     = time.Hour // 128,000 tokens at 36 a second
	// DefaultContent is long, because a model that thinks without visible output sends only
	// keep-alives.
	DefaultContent = 10 * time.Minute
)

// Timeouts guard one attempt, so that a silent open connection does not block it, and one
// that sends a byte now and then does not block it for ever.
type Timeouts struct {
	Headers   time.Duration // from sending to the response headers; 0 means 60 s
	FirstByte time.Duration // from the headers to the first byte; 0 means 120 s
	Idle      time.Duration // from one line of the stream to the next; 0 means 90 s
	Total     time.Duration // from sending to the end of the stream; 0 means 1 h
	// Content is the time from the headers, and from one piece of the reply to the next,
	// whatever comments, pings, empty and unknown events keep the line busy; 0 means 10 min.
	Content time.Duration
}

func (t Timeouts) withDefaults() Timeouts {
	or := func(d, otherwise time.Duration) time.Duration {
		if d <= 0 {
			return otherwise
		}
		return d
	}
	return Timeouts{or(t.Headers, DefaultHeaders), or(t.FirstByte, DefaultFirstByte), or(t.Idle, DefaultIdle), or(t.Total, DefaultTotal), or(t.Content, DefaultContent)}
}

// Attempt is one HTTP exchange of one model call. It is the HTTP client of an SDK for
// exactly that exchange: Do passes on only an event stream with status 2xx and turns
// everything else into a *model.Error.
type Attempt struct {
	ctx      context.Context
	parent   context.Context
	cancel   context.CancelCauseFunc
	client   *http.Client
	timeouts Timeouts
	secrets  []string

	totalTimer   *time.Timer // runs from Do to Close
	contentTimer *time.Timer // runs from the headers to Close; reset when the reply grows
	size         int         // of the reply, as given to RecordGrowth
	trace        SendTrace

	mu      sync.Mutex
	timer   *time.Timer
	sawDone bool // the stream held the line that ends it by convention
}

// NewAttempt begins an attempt under ctx. The secrets never appear in an error.
// The caller must call Close.
func NewAttempt(ctx context.Context, transport http.RoundTripper, t Timeouts, secrets ...string) *Attempt {
	a := &Attempt{parent: ctx, timeouts: t.withDefaults(), secrets: secrets}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.client = &http.Client{
		Transport: transport,
		// A redirect would carry the key to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a
}

// Context is the context the request must be made with.
func (a *Attempt) Context() context.Context { return a.ctx }

// Close ends the attempt and frees its connection.
func (a *Attempt) Close() {
	a.resetTimer(0, "")
	for _, t := range []*time.Timer{a.totalTimer, a.contentTimer} {
		if t != nil {
			t.Stop()
		}
	}
	a.cancel(context.Canceled)
}

// SawDoneLine reports whether the stream held "data: [DONE]".
func (a *Attempt) SawDoneLine() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sawDone
}

// RecordGrowth records how much of the reply has arrived, in any unit. An adapter calls it after
// each event: an event by which the reply did not grow is a keep-alive, and keep-alives
// alone do not extend the attempt.
func (a *Attempt) RecordGrowth(size int) {
	if size == a.size {
		return
	}
	a.size = size
	if a.contentTimer != nil && a.contentTimer.Stop() {
		a.contentTimer.Reset(a.timeouts.Content)
	}
}

// resetTimer fails the attempt after d unless it is called again; 0 only stops.
func (a *Attempt) resetTimer(d time.Duration, waiting string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if d <= 0 {
		return
	}
	a.timer = a.failAfter(d, waiting)
}

// failAfter fails the attempt after d.
func (a *Attempt) failAfter(d time.Duration, waiting string) *time.Timer {
	return time.AfterFunc(d, func() {
		a.cancel(&model.Error{Class: model.Network, Message: fmt.Sprintf("no %s within %s", waiting, d)})
	})
}

// Do sends the request; see Attempt.
func (a *Attempt) Do(req *http.Request) (*http.Response, error) {
	a.totalTimer = a.failAfter(a.timeouts.Total, "end of the stream")
	a.resetTimer(a.timeouts.Headers, "response headers")
	res, err := a.client.Do(a.trace.Attach(req))
	if err != nil {
		return nil, a.ModelError(err)
	}
	a.contentTimer = a.failAfter(a.timeouts.Content, "content of the reply")
	a.resetTimer(a.timeouts.FirstByte, "first byte of the response")
	if err := a.responseError(res); err != nil {
		res.Body.Close()
		return nil, err
	}
	res.Body = &streamBody{attempt: a, rc: res.Body}
	return res, nil
}

// responseError returns the error that a response means, or nil if the response is a stream.
func (a *Attempt) responseError(res *http.Response) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	ok := res.StatusCode >= 200 && res.StatusCode < 300
	if ok && (kind == "text/event-stream" || kind == "") {
		return nil
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return &model.Error{Class: model.Misconfigured, Status: res.StatusCode,
			Message: "the base URL redirects; redirects are not followed, because they would carry the key along"}
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, MaxErrorBody))
	var known *model.Error
	if err != nil && (a.ctx.Err() != nil || errors.As(err, &known)) {
		return a.ModelError(err)
	}
	if !ok || hasError(text) {
		return ClassifyError(res.StatusCode, res.Header, text, a.secrets...)
	}
	return &model.Error{Class: model.Misconfigured, Status: res.StatusCode,
		Message: fmt.Sprintf("the base URL answered %q instead of an event stream", truncateText(kind, 60))}
}

// ModelError turns an error of the exchange into a *model.Error: the caller's cancel takes
// precedence, then troupe's timers, then the error itself.
func (a *Attempt) ModelError(err error) error {
	var known *model.Error
	switch cause := context.Cause(a.ctx); {
	case a.parent.Err() != nil:
		return a.markUnsent(err, &model.Error{Class: model.Aborted, Message: "the call was stopped: " + a.parent.Err().Error()})
	case errors.As(cause, &known):
		return a.markUnsent(err, known)
	case errors.As(err, &known):
		return known
	}
	return a.markUnsent(err, a.classifyError(err))
}

// Outcome returns the outcome of an attempt: nil once the provider has said that the reply is
// whole, whatever failed after that; otherwise the failure, the caller's cancel, or a
// stream that ended early.
func (a *Attempt) Outcome(whole bool, err error) error {
	switch {
	case whole:
		return nil
	case err != nil:
		return err
	case a.parent.Err() != nil:
		return a.ModelError(a.parent.Err())
	}
	return &model.Error{Class: model.Network, Message: "the stream ended without its end marker"}
}

// ParseBaseURL refuses an address to which no request can be sent.
func ParseBaseURL(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &model.Error{Class: model.Misconfigured, Unbilled: true, Message: "the base URL is not an http or https URL"}
	}
	return u, nil
}

func (a *Attempt) classifyError(err error) *model.Error {
	e := &model.Error{Class: model.Network, Message: ScrubText(rootCause(err).Error(), a.secrets...)}
	switch {
	case IsNotTLS(err):
		e.Class, e.Message = model.Misconfigured, "the base URL is https, but its server does not speak TLS"
	case IsUntrusted(err):
		e.Class = model.Misconfigured
	case isSyntaxError(err):
		e.Class, e.Message = model.Undecodable, "the stream contains data that is not JSON"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Message = "the connection ended in the middle of the response"
	}
	return e
}

// streamBody bounds a response body and feeds the timers line by line: a server that
// drips bytes without ever ending a line makes no progress.
type streamBody struct {
	attempt *Attempt
	rc      io.ReadCloser
	started bool
	total   int64
	line    int64  // length of the line so far
	head    []byte // its first bytes
}

// doneLine is how OpenAI's streams end, without the space some servers put in it.
const doneLine = "data:[DONE]"

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	if n > 0 && !b.started {
		b.started = true
		b.attempt.resetTimer(b.attempt.timeouts.Idle, "event")
	}
	if bad := b.countBytes(p[:n]); bad != nil {
		return 0, bad
	}
	switch {
	case err == io.EOF:
		b.endLine()
	case err != nil:
		err = b.attempt.ModelError(err)
	}
	return n, err
}

// countBytes counts and watches the bytes that arrived.
func (b *streamBody) countBytes(p []byte) error {
	if b.total += int64(len(p)); b.total > MaxBody {
		return &model.Error{Class: model.Undecodable, Message: fmt.Sprintf("the response is longer than %d bytes", int64(MaxBody))}
	}
	ended := false
	for len(p) > 0 {
		part, rest, found := bytes.Cut(p, []byte{'\n'})
		b.line += int64(len(part))
		for _, c := range part {
			if len(b.head) > len(doneLine) {
				break // one more than it may have
			}
			if c != ' ' {
				b.head = append(b.head, c)
			}
		}
		if found {
			b.endLine()
			ended = true
		}
		p = rest
	}
	if b.line > MaxLine {
		return &model.Error{Class: model.Undecodable, Message: fmt.Sprintf("a line of the response is longer than %d bytes", int64(MaxLine))}
	}
	if ended {
		b.attempt.resetTimer(b.attempt.timeouts.Idle, "event")
	}
	return nil
}

func (b *streamBody) endLine() {
	if string(b.head) == doneLine {
		b.attempt.mu.Lock()
		b.attempt.sawDone = true
		b.attempt.mu.Unlock()
	}
	b.line, b.head = 0, b.head[:0]
}

func (b *streamBody) Close() error {
	b.attempt.resetTimer(0, "")
	return b.rc.Close()
}
