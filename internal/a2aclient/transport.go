package a2aclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of a connection.
const (
	dialTimeout  = 10 * time.Second
	idleTimeout  = 30 * time.Second
	redirectsMax = 3
	headersMax   = 64 << 10
)

// newHTTPClient makes the client of all calls. No redirect leads to another server, and none repeats a task.
func newHTTPClient() *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: headersMax, IdleConnTimeout: idleTimeout,
	}
	return &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet || origin(r.URL) != origin(via[0].URL) || len(via) > redirectsMax {
			return http.ErrUseLastResponse // which statusError describes
		}
		return nil
	}}
}

// do sends a request with the credential of the agent. Its errors have no URL: what a server redirects to is its own
// text.
func (c *Caller) do(req *http.Request, t target) (*http.Response, error) {
	if t.headerName != "" {
		req.Header.Set(t.headerName, t.headerValue)
	}
	res, err := c.http.Do(req)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return res, err
}

// post sends a request of JSON-RPC and returns the response, whose body the caller closes. sent says whether a byte of
// it may have reached the server.
func (c *Caller) post(
	ctx context.Context, t target, method string, params any, accept string,
) (res *http.Response, sent bool, err error) {
	request := map[string]any{"jsonrpc": "2.0", "id": c.nextID.Add(1), "method": method, "params": params}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, false, fmt.Errorf("a2aclient: request: %w", err)
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return nil, false, fmt.Errorf("a2aclient: request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	if !t.dialect.old {
		req.Header.Set("A2A-Version", t.version)
	}
	if t.trace != "" {
		req.Header.Set("traceparent", t.trace)
	}
	res, err = c.do(req, t)
	return res, connected.Load(), err
}

// request sends a request and returns its result.
func (c *Caller) request(
	ctx context.Context, t target, method string, params any,
) (result json.RawMessage, sent bool, err error) {
	res, sent, err := c.post(ctx, t, method, params, "application/json")
	if err != nil {
		return nil, sent, err
	}
	defer func() { _ = res.Body.Close() }()
	result, err = readResult(res)
	return result, true, err
}

// readResult reads a response that is no stream. An error of JSON-RPC may have any status.
func readResult(res *http.Response) (json.RawMessage, error) {
	if res.StatusCode != http.StatusOK {
		data, err := readAll(res.Body, errorBytesMax)
		_, failed := decode(data)
		switch {
		case err != nil || !errors.Is(failed, errForeign) || isCredential(res.StatusCode):
			return nil, statusError(res)
		case isBusy(res.StatusCode):
			return nil, fmt.Errorf("%w: %w", statusError(res), failed)
		}
		return nil, failed
	}
	data, err := readAll(res.Body, bodyBytesMax)
	if err != nil {
		return nil, err
	}
	return decode(data)
}

func isCredential(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

func isBusy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// httpError is a response with a status that is no success.
type httpError struct {
	kind       error // what that says of the request
	status     int
	location   string // the server that a redirect leads to
	retryAfter time.Duration
}

func (e *httpError) Error() string {
	text := fmt.Sprintf("%v: HTTP %d %s", e.kind, e.status, http.StatusText(e.status)) // not the server's own words
	if e.location != "" {
		text += fmt.Sprintf(" to %.200q", e.location)
	}
	return text
}

func (e *httpError) Unwrap() error { return e.kind }

// statusError describes a status that is no success.
func statusError(res *http.Response) error {
	e := &httpError{kind: errRefused, status: res.StatusCode}
	e.retryAfter = parseRetryAfter(res.Header.Get("Retry-After"))
	switch code := res.StatusCode; {
	case isCredential(code):
		e.kind = errCredential
	case isBusy(code):
		e.kind = errBusy
	case code >= http.StatusInternalServerError:
		e.kind = errServer
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		e.kind = errRedirect
		if to, err := res.Location(); err == nil {
			e.location = origin(to)
		}
	}
	return e
}

// asksElsewhere reports whether an error is a redirect that says that the server did not take the request, and wants it
// at another address.
func asksElsewhere(err error) bool {
	var e *httpError
	return errors.As(err, &e) && (e.status == http.StatusTemporaryRedirect || e.status == http.StatusPermanentRedirect)
}

// retryAfter returns how long the server wants to be left alone after an error; 0 if it does not say.
func retryAfter(err error) time.Duration {
	if e := (*httpError)(nil); errors.As(err, &e) {
		return e.retryAfter
	}
	return 0
}

// parseRetryAfter reads a header Retry-After, seconds or a date, up to retryAfterMax.
func parseRetryAfter(text string) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(n, uint64(retryAfterMax/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(time.Until(at), 0), retryAfterMax)
}

// readAll reads a body up to a limit of bytes.
func readAll(body io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, most+1))
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, most)
	}
	return data, err
}

// isEventStream reports whether a body is a stream of events.
func isEventStream(res *http.Response) bool {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// readEvents reads a stream of server-sent events up to its end, or until take says that it is enough. alive is called
// whenever something has arrived. A last event without its end is taken if it is whole JSON; else the stream is broken:
// not every connection says that it ends too early.
func readEvents(body io.Reader, alive func(), take func(data []byte) (enough bool, err error)) error {
	lines := bufio.NewReaderSize(&countedReader{from: body, left: streamBytesMax, alive: alive}, 64<<10)
	var data, line []byte
	for {
		piece, err := lines.ReadSlice('\n')
		if line = append(line, piece...); len(line)+len(data) > eventBytesMax {
			return fmt.Errorf("%w: an event has more than %d bytes", errTooLarge, eventBytesMax)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		text := strings.TrimRight(string(line), "\r\n")
		line = line[:0]
		if value, ok := strings.CutPrefix(text, "data:"); ok {
			data = append(append(data, strings.TrimPrefix(value, " ")...), '\n')
		}
		if err != nil && len(data) > 0 && !json.Valid(data) {
			return io.ErrUnexpectedEOF
		}
		if (text == "" || err != nil) && len(data) > 0 {
			enough, failed := take(data)
			if enough || failed != nil {
				return failed
			}
			data = data[:0]
		}
		if err != nil { // the end
			return nil
		}
	}
}

// countedReader bounds a stream as a whole.
type countedReader struct {
	from  io.Reader
	left  int64
	alive func()
}

func (r *countedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("%w: the stream has more than %d bytes", errTooLarge, int64(streamBytesMax))
	}
	n, err := r.from.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.alive()
	return n, err
}
