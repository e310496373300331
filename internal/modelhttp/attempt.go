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
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
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

// Attempt is one HTTP exchange of one model call: Stream sends the request and reads the
// answer. It accepts only an event stream with status 2xx and turns everything else into a
// *model.Error. An attempt serves one goroutine.
type Attempt struct {
	ctx      context.Context
	parent   context.Context
	cancel   context.CancelCauseFunc
	by       http.RoundTripper
	timeouts Timeouts
	secrets  []string
	watch    watchdog

	size    int         // of the reply, as given to RecordGrowth
	header  http.Header // of the answer
	refusal []byte      // the body of an answer that is not a stream
	trace   SendTrace
	sawDone bool // the stream held the line that ends it by convention
}

// NewAttempt begins an attempt under ctx. The secrets never appear in an error.
// The caller must call Close.
func NewAttempt(ctx context.Context, transport http.RoundTripper, t Timeouts, secrets ...string) *Attempt {
	a := &Attempt{parent: ctx, by: transport, timeouts: t.withDefaults(), secrets: secrets}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.watch.fail = a.cancel
	return a
}

// Close ends the attempt and frees its connection.
func (a *Attempt) Close() {
	a.watch.stop()
	a.cancel(context.Canceled)
}

// SawDoneLine reports whether the stream held "data: [DONE]".
func (a *Attempt) SawDoneLine() bool { return a.sawDone }

// IsBodyRead reports whether the transport is known to read the body of the request no more.
func (a *Attempt) IsBodyRead() bool { return a.trace.isBodyRead() }

// Header returns the headers of the answer; none if there was no answer.
func (a *Attempt) Header() http.Header { return a.header }

// Refusal returns the body of an answer that is not a stream, at most MaxErrorBody bytes of it.
func (a *Attempt) Refusal() []byte { return a.refusal }

// RecordGrowth records how much of the reply has arrived, in any unit. An adapter calls it after
// each event: an event by which the reply did not grow is a keep-alive, and keep-alives
// alone do not extend the attempt.
func (a *Attempt) RecordGrowth(size int) {
	if size != a.size {
		a.size = size
		a.watch.expect(nextContent, "content of the reply", a.timeouts.Content)
	}
}

// send posts a request and returns the body of the answer, which is an event stream.
func (a *Attempt) send(to Endpoint, body []byte) (io.ReadCloser, error) {
	a.watch.expect(wholeReply, "end of the stream", a.timeouts.Total)
	a.watch.expect(nextLine, "response headers", a.timeouts.Headers)
	req := to.template.WithContext(a.trace.context(a.ctx))
	req.ContentLength = int64(len(body))
	// The transport may repeat a request if it has written nothing of it.
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body = io.NopCloser(bytes.NewReader(body))
	// Without http.Client, which follows redirects: they would carry the key to another host.
	res, err := a.by.RoundTrip(req)
	if err != nil {
		return nil, a.ModelError(err)
	}
	a.header = res.Header
	a.watch.expect(nextContent, "content of the reply", a.timeouts.Content)
	a.watch.expect(nextLine, "first byte of the response", a.timeouts.FirstByte)
	if err := a.responseError(res); err != nil {
		res.Body.Close()
		return nil, err
	}
	return res.Body, nil
}

// responseError returns the error that a response means, or nil if the response is a stream.
func (a *Attempt) responseError(res *http.Response) error {
	ok := res.StatusCode >= 200 && res.StatusCode < 300
	if ok && mayBeStream(res.Header.Get("Content-Type")) {
		return nil
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return &model.Error{Class: model.Misconfigured, Status: res.StatusCode,
			Message: "the base URL redirects; redirects are not followed, because they would carry the key along"}
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, MaxErrorBody))
	a.refusal = text
	var known *model.Error
	if err != nil && (a.ctx.Err() != nil || errors.As(err, &known)) {
		return a.ModelError(err)
	}
	if !ok || hasError(text) {
		e := ClassifyError(res.StatusCode, res.Header, text, a.secrets...)
		if e.Class == model.Misconfigured && !hasError(text) { // no provider's error: a server without this path
			e.Message = a.describeWrongPath(res)
		}
		return e
	}
	// as it was sent: in kind, a secret may have lost its capitals
	sent, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	return &model.Error{Class: model.Misconfigured, Status: res.StatusCode,
		Message: fmt.Sprintf("the base URL answered %q instead of an event stream", clip.Marked(ScrubText(sent, a.secrets...), 60, "…"))}
}

// mayBeStream reports whether a content type is that of an event stream, or none.
func mayBeStream(contentType string) bool {
	const stream = "text/event-stream"
	if kind, _, _ := strings.Cut(contentType, ";"); kind == stream {
		return true
	}
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == stream || kind == ""
}

// describeWrongPath says which address the base URL made, and what is usually wrong with it.
func (a *Attempt) describeWrongPath(res *http.Response) string {
	u := res.Request.URL
	text := fmt.Sprintf("%s://%s%s answered %q: check the path of the base URL", u.Scheme, u.Host, u.EscapedPath(), http.StatusText(res.StatusCode))
	if !strings.Contains(u.Path, "/v1") {
		text += ", which usually ends in /v1"
	}
	return ScrubText(text, a.secrets...)
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
