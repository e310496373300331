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
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: headersMax, IdleConnTimeout: idleTimeout}
	return &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet || origin(r.URL) != origin(via[0].URL) || len(via) > redirectsMax {
			return fmt.Errorf("%w to %.200q", errRedirect, origin(r.URL))
		}
		return nil
	}}
}

// do sends a request with the credential of the agent. Its errors have no URL: what a server sends on to is its own text.
func (c *Caller) do(req *http.Request, t target) (*http.Response, error) {
	if t.header[0] != "" {
		req.Header.Set(t.header[0], t.header[1])
	}
	res, err := c.http.Do(req)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return res, err
}

// post sends a request of JSON-RPC and returns the response, whose body the caller closes. sent says whether a byte of it may have
// reached the server.
func (c *Caller) post(ctx context.Context, t target, method string, params any, accept string) (res *http.Response, sent bool, err error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.nextID.Add(1), "method": method, "params": params})
	if err != nil {
		return nil, false, fmt.Errorf("a2aclient: request: %w", err)
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return nil, false, fmt.Errorf("a2aclient: request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	if !t.dialect.old {
		req.Header.Set("A2A-Version", t.version)
	}
	res, err = c.do(req, t)
	return res, connected.Load(), err
}

// request sends a request and returns its result.
func (c *Caller) request(ctx context.Context, t target, method string, params any) (result json.RawMessage, sent bool, err error) {
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
		if _, failed := decode(data); err == nil && errors.Is(failed, errForeign) && !isCredential(res.StatusCode) {
			return nil, failed
		}
		return nil, statusError(res)
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

// statusError describes a status that is no success.
func statusError(res *http.Response) error {
	text := http.StatusText(res.StatusCode) // not the server's own words
	switch code := res.StatusCode; {
	case isCredential(code):
		return fmt.Errorf("%w: HTTP %d %s", errCredential, code, text)
	case code >= http.StatusInternalServerError:
		return fmt.Errorf("%w: HTTP %d %s", errServer, code, text)
	default:
		return fmt.Errorf("%w: HTTP %d %s", errRefused, code, text)
	}
}

// readAll reads a body of at most so many bytes.
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
// whenever something has arrived.
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
