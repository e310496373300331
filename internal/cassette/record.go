package cassette

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// failure is why an exchange broke.
type failure struct {
	Text string `json:"text"`
	// Dial: the connection was never made, so nothing was sent. Untrusted: the server was
	// not the one that its address names.
	Dial      bool `json:"dial,omitempty"`
	Untrusted bool `json:"untrusted,omitempty"`
	NoTLS     bool `json:"no_tls,omitempty"`
	// Class and Unbilled are those of the caller's own timer, if it broke it.
	Class    model.ErrorClass `json:"class,omitempty"`
	Unbilled bool             `json:"unbilled,omitempty"`
}

// failureShown is the most bytes of the text of a failure.
const failureShown = 1 << 10

// Config of a Recorder.
type Config struct {
	// Dir is where the files go. It is made; there must be no recording in it.
	Dir string
	// Scrub removes the values of secrets from a text. Default: none are known.
	Scrub func(string) string
	// Next sends the requests. Default modelhttp.SharedTransport.
	Next http.RoundTripper
}

// Recorder is a transport that keeps every POST it sends. It is safe for
// concurrent use.
type Recorder struct {
	dir   string
	clean secretCleaner
	next  http.RoundTripper

	mu      sync.Mutex
	n       int
	labeled bool
	failed  error
}

// ErrFull means that a directory holds a recording already.
var ErrFull = errors.New("cassette: the directory holds a recording already")

// NewRecorder makes the directory, and a Recorder into it.
func NewRecorder(cfg Config) (*Recorder, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCassette, err)
	}
	names, err := exchangeFiles(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrFull, cfg.Dir)
	}
	r := &Recorder{dir: cfg.Dir, clean: cfg.Scrub, next: cfg.Next}
	if r.next == nil {
		r.next = modelhttp.SharedTransport()
	}
	// Whether files can be written is better known before money is spent.
	return r, writeFile(cfg.Dir, labelName, Label{Version: Version, At: time.Now().UTC()})
}

// Begin labels the cassette with the settings of its first run.
func (r *Recorder) Begin(l Label) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.labeled {
		return nil
	}
	r.labeled = true
	l.Version = Version
	for name, v := range l.Env {
		l.Env[name] = r.clean.cleanText(v)
	}
	return writeFile(r.dir, labelName, l)
}

// Err is why an exchange could not be kept, if one could not.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// RoundTrip sends a request and records the exchange once it is over. After an
// exchange that could not be recorded it sends no other: a recording with holes is useless.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost { // no model call
		return r.next.RoundTrip(req)
	}
	if err := r.Err(); err != nil {
		return nil, errors.Join(&model.Error{Class: model.Misconfigured, Unbilled: true,
			Message: "the recording cannot be kept: " + r.clean.cleanText(err.Error())}, closeBody(req))
	}
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	sent := req.Clone(req.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	began := time.Now()
	t := &recordedBody{r: r, ctx: req.Context(), began: began, x: exchange{Version: Version, N: r.nextNumber(), At: began.UTC(),
		Request: sentRequest{Method: req.Method, URL: r.clean.cleanURL(req.URL), Header: r.clean.cleanHeader(req.Header), body: newBody([]byte(r.clean.cleanText(string(body))))}}}
	var seen modelhttp.SendTrace
	res, err := r.next.RoundTrip(seen.Attach(sent))
	if err != nil {
		t.unsent = seen.ProvesUnsent(err)
		t.writeExchange(err)
		return nil, err
	}
	t.body = res.Body
	t.x.Response = &response{Status: res.StatusCode, Header: r.clean.cleanHeader(res.Header), AfterMS: time.Since(began).Milliseconds()}
	res.Body = t
	return res, nil
}

func (r *Recorder) nextNumber() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return r.n
}

// readBody takes the whole body of a request.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, fmt.Errorf("%w: the body of a request: %w", ErrCassette, err)
	}
	return body, nil
}

func closeBody(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	return req.Body.Close()
}

// recordedBody is the body of a response that is being recorded.
type recordedBody struct {
	r     *Recorder
	ctx   context.Context
	began time.Time
	body  io.ReadCloser
	once  sync.Once

	unsent bool // no byte of the request went out

	mu   sync.Mutex // a reader may be in the middle when another one closes
	x    exchange
	kept int
}

func (t *recordedBody) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	t.keepBytes(p[:n])
	switch {
	case err == io.EOF:
		t.writeExchange(nil)
	case err != nil:
		t.writeExchange(err)
	}
	return n, err
}

// keepBytes takes what came, up to BodyBytesMax.
func (t *recordedBody) keepBytes(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := BodyBytesMax - t.kept; len(p) > room {
		p, t.x.Response.Cut = p[:room], true
	}
	if len(p) > 0 {
		t.kept += len(p)
		t.x.Response.Chunks = append(t.x.Response.Chunks, newChunk(time.Since(t.began), p))
	}
}

// Close ends the exchange as it stands: a reader that knows enough reads no further.
func (t *recordedBody) Close() error {
	t.writeExchange(nil)
	return t.body.Close()
}

// writeExchange writes the exchange, once.
func (t *recordedBody) writeExchange(err error) {
	t.once.Do(func() {
		t.mu.Lock()
		x := t.x
		t.mu.Unlock()
		if err != nil {
			x.Failure = t.failureFacts(err)
		}
		if x.Response != nil {
			kept := *x.Response
			kept.Chunks = t.r.clean.cleanChunks(kept.Chunks)
			x.Response = &kept
		}
		if err := writeFile(t.r.dir, fileName(x.N), x); err != nil {
			t.r.mu.Lock()
			t.r.failed = errors.Join(t.r.failed, err)
			t.r.mu.Unlock()
		}
	})
}

// failureFacts records the facts that an adapter makes its error of.
func (t *recordedBody) failureFacts(err error) *failure {
	var own *model.Error
	switch {
	case errors.As(context.Cause(t.ctx), &own):
		return &failure{Text: t.r.clean.cleanText(own.Message), Class: own.Class, Unbilled: own.Unbilled || t.unsent}
	case t.ctx.Err() != nil:
		return &failure{Text: "the call was stopped: " + t.ctx.Err().Error()}
	}
	return &failure{Text: t.r.clean.cleanText(clip.Marked(strings.ToValidUTF8(err.Error(), "\uFFFD"), failureShown, "…")), Dial: t.unsent, Untrusted: modelhttp.IsUntrusted(err), NoTLS: modelhttp.IsNotTLS(err)}
}
