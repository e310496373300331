package modelhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/troupe-run/troupe/model"
)

// SendTrace records how far a request got. The transport reports that it looks for a
// connection, and later that it has one: a name that does not resolve, a refused
// connection, a proxy that refuses the tunnel and a failed TLS handshake are in between.
// Bytes written before the second report do not belong to the request.
type SendTrace struct {
	sought       atomic.Bool
	got, written atomic.Int64 // connections, and requests whose body the transport reads no more
}

// Attach returns the request with the trace.
func (t *SendTrace) Attach(req *http.Request) *http.Request {
	return req.WithContext(t.context(req.Context()))
}

// context returns the context of a request with the trace.
func (t *SendTrace) context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.sought.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.got.Add(1) },
		// called when the body was written or writing it failed, once for each connection
		WroteRequest: func(httptrace.WroteRequestInfo) { t.written.Add(1) },
	})
}

// ProvesUnsent reports whether provably no byte of the request was sent, given the error
// that it ended with. A transport that reports nothing leaves it unknown.
func (t *SendTrace) ProvesUnsent(err error) bool {
	var op *net.OpError
	return t.got.Load() == 0 && (t.sought.Load() || errors.As(err, &op) && op.Op == "dial")
}

// isBodyRead reports whether the transport is done with the body of the request: a cancel or an early answer can leave
// it reading. A transport that reports nothing leaves it unknown.
func (t *SendTrace) isBodyRead() bool {
	got := t.got.Load()
	return got > 0 && t.written.Load() == got
}

// markUnsent marks the error of a request that was never sent: it cannot have been billed.
func (a *Attempt) markUnsent(cause error, told *model.Error) error {
	if told.Unbilled || !a.trace.ProvesUnsent(cause) {
		return told
	}
	free := *told
	free.Unbilled = true
	return &free
}

// IsUntrusted reports whether the server is not the one that the base URL names: its
// certificate is not trusted, or it does not speak TLS. A retry does not help.
func IsUntrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || IsNotTLS(err)
}

// IsNotTLS reports whether the server answered a TLS handshake in plain text.
func IsNotTLS(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch)
}
