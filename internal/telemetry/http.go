package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// answerBytesMax is the most that is read of the answer of a receiver.
const answerBytesMax = 64 << 10

var (
	errRejected = errors.New("telemetry: the receiver rejects what it gets")
	// errNotServed says that the receiver has no such path: it takes other signals.
	errNotServed = errors.New("telemetry: the receiver does not take this signal")
)

// retryableError is a failure after which the same batch may be sent again.
type retryableError struct {
	error
	after time.Duration // that the receiver asks for
}

func (e *retryableError) Unwrap() error { return e.error }

// httpClient posts batches to one receiver.
type httpClient struct {
	target target
	client *http.Client
}

func newHTTPClient(t target) *httpClient {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = t.tls
	// A redirect would carry the headers, with their credentials, elsewhere.
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &httpClient{t, &http.Client{Transport: transport, Timeout: t.timeout, CheckRedirect: noRedirect}}
}

// post sends one batch, and returns how many of its spans or values the receiver rejected.
func (c *httpClient) post(ctx context.Context, body []byte) (rejected int64, err error) {
	encoding := ""
	if c.target.gzip {
		if body, err = compress(body); err != nil {
			return 0, fmt.Errorf("telemetry: compress: %w", err)
		}
		encoding = "gzip"
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target.url, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("telemetry: %w", withoutURL(err))
	}
	for name, values := range c.target.headers {
		q.Header[name] = values
	}
	q.Header.Set("Content-Type", "application/x-protobuf")
	if encoding != "" {
		q.Header.Set("Content-Encoding", encoding)
	}
	r, err := c.client.Do(q)
	if err != nil {
		return 0, &retryableError{error: fmt.Errorf("telemetry: %w", withoutURL(err))}
	}
	defer func() { _ = r.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(r.Body, answerBytesMax))
	switch {
	case r.StatusCode >= 200 && r.StatusCode < 300:
		return rejectedSpans(answer), nil // an answer that breaks off does not undo the status
	case mayRetry(r.StatusCode):
		return 0, &retryableError{fmt.Errorf("telemetry: the receiver answers %s", statusText(r.StatusCode)), retryAfter(r.Header)}
	case r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusMethodNotAllowed || r.StatusCode == http.StatusNotImplemented:
		return 0, fmt.Errorf("%w: it answers %s", errNotServed, statusText(r.StatusCode))
	}
	return 0, errors.Join(fmt.Errorf("%w: it answers %s", errRejected, statusText(r.StatusCode)), err)
}

// statusText describes a status without the text of the receiver, which may have any length.
func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// withoutURL removes the address, which may hold credentials, from the error of a request.
func withoutURL(err error) error {
	var known *url.Error
	if errors.As(err, &known) {
		return known.Err
	}
	return err
}

func compress(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}

// mayRetry reports whether OTLP lets a client send again after a status.
func mayRetry(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > int(pauseMax/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// Fields of ExportTraceServiceResponse and of its ExportTracePartialSuccess.
const (
	partialSuccessField = 1
	rejectedSpansField  = 1
)

// rejectedSpans returns how many spans an ExportTraceServiceResponse says were rejected; 0 for an answer that is none.
func rejectedSpans(answer []byte) int64 {
	partial, ok := protoField(answer, partialSuccessField, protowire.BytesType)
	if !ok {
		return 0
	}
	inner, _ := protowire.ConsumeBytes(partial)
	rejected, ok := protoField(inner, rejectedSpansField, protowire.VarintType)
	if !ok {
		return 0
	}
	n, _ := protowire.ConsumeVarint(rejected)
	return int64(min(n, batchMost))
}

// protoField returns what follows the tag of a field.
func protoField(message []byte, field protowire.Number, kind protowire.Type) ([]byte, bool) {
	for len(message) > 0 {
		number, is, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, false
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, is, message)
		if size < 0 {
			return nil, false
		}
		if number == field && is == kind {
			return message, true
		}
		message = message[size:]
	}
	return nil, false
}

// validText is a text that protobuf accepts.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
