package mcpclient

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/internal/process"
	"github.com/troupe-run/troupe/internal/toolset/web"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/tool"
)

// passedOn lists the variables of the node's own environment that a server gets: none
// that could hold a secret.
var passedOn = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// serverLink is a way to a server.
type serverLink struct {
	transport sdk.Transport
	child     *process.Child // nil: an address
	web       *http.Transport
}

// closeLink ends the way, and the server if it is a program of ours.
func (l serverLink) closeLink() {
	if l.child != nil {
		l.child.Stop()
	}
	if l.web != nil {
		l.web.CloseIdleConnections()
	}
}

// lastStderr returns the end of what the server wrote to stderr, with its secrets.
func (l serverLink) lastStderr() string {
	if l.child == nil {
		return ""
	}
	return strings.TrimSpace(visibleText(strings.ToValidUTF8(l.child.Stderr(), "")))
}

const stderrShown = 600

// openLink makes the way to a server whose variables are expanded. Its errors have
// their values, uncut: they are for l.shown.
func openLink(s Server, dir string, trusted bool) (serverLink, error) {
	if s.URL != "" {
		return reachWeb(s, trusted)
	}
	env := make([]string, 0, len(passedOn)+len(s.Env))
	for _, name := range passedOn {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(env, s.UserEnv...)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
	}
	if s.Dir != "" {
		dir = s.Dir
	}
	if s.At != nil {
		at, err := s.At.OpenFor(dir)
		if err != nil {
			return serverLink{}, err
		}
		defer func() { _ = at.Close() }()
		dir = workdir.DescriptorPath(at)
	}
	child, err := process.Start(process.Spec{Argv: append([]string{s.Command}, s.Args...), Dir: dir, Env: env})
	if err != nil {
		return serverLink{}, err
	}
	return serverLink{child: child, transport: &sdk.IOTransport{Reader: io.NopCloser(child.Stdout), Writer: boundedStdin{child.Stdin, s.callTimeout()}, MaxLineLength: MessageBytesMax}}, nil
}

// Bounds of a connection to an address.
const (
	dialTimeout = 10 * time.Second
	tlsTimeout  = 10 * time.Second
)

// reachWeb makes the way to an address. The headers of the file go there and
// nowhere else, and no redirect leads to another host.
func reachWeb(s Server, trusted bool) (serverLink, error) {
	at, err := url.Parse(s.URL)
	if err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https" {
		return serverLink{}, fmt.Errorf("%w: %q is not an http or https URL", ErrAddress, s.URL)
	}
	if at.User != nil {
		return serverLink{}, fmt.Errorf("%w: a password has no place in a URL; write a header", ErrAddress)
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	if !trusted && !isLiteralHost(at.Hostname()) {
		dialer.Control = publicOnly
	}
	web := &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: tlsTimeout, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10}
	client := &http.Client{Transport: withHeaders{s.Headers, at.Host, web}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != at.Host || r.URL.Scheme != at.Scheme || len(via) > redirectsMax {
			return fmt.Errorf("%w: %s sends on to %s", ErrAddress, at.Host, r.URL.Redacted())
		}
		return nil
	}}
	return serverLink{web: web, transport: &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxEventSize: MessageBytesMax}}, nil
}

const redirectsMax = 3

// isLiteralHost reports whether the definition contains the address itself: then the person who
// allowed the definition has seen that the address is not public.
func isLiteralHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost"
}

// publicOnly refuses an address, after names were resolved, that is not on
// the public network: the node's own machine, its neighbours, the metadata services of
// clouds.
func publicOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAddress, err)
	}
	if !web.Public(host) {
		return fmt.Errorf("%w: %s is a private address; only a file of the operator may name it", ErrAddress, host)
	}
	return nil
}

// withHeaders adds the headers of the definition.
type withHeaders struct {
	headers map[string]string
	host    string
	next    http.RoundTripper
}

func (t withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.host {
		return nil, fmt.Errorf("%w: %s", ErrAddress, r.URL.Host)
	}
	r = r.Clone(r.Context())
	for k, v := range t.headers {
		r.Header.Set(k, v)
	}
	res, err := t.next.RoundTrip(r)
	if err == nil && (res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden) {
		return nil, errors.Join(fmt.Errorf("%w: it answers %s: add the credential that it requires to its headers", ErrStart, res.Status), res.Body.Close())
	}
	if err == nil && !isEventStream(res) {
		res.Body = http.MaxBytesReader(nil, res.Body, MessageBytesMax)
	}
	return res, err
}

// isEventStream reports whether the body is a stream of events. The reader of a stream
// bounds each event. Any other body is read as a whole.
func isEventStream(res *http.Response) bool {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream" && res.StatusCode < http.StatusMultipleChoices
}

// boundedStdin is the stdin of a server that may not read it. A write that is not done
// within the time of a call closes the connection, and so ends the server: a partial
// message is useless.
type boundedStdin struct {
	*os.File
	patience time.Duration
}

func (w boundedStdin) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.patience)); err != nil {
		return 0, err
	}
	n, err := w.File.Write(p)
	if err != nil {
		_ = w.Close() // a server that waits for more ends
	}
	return n, err
}

// callTimeout is how long a call takes at most.
func (s Server) callTimeout() time.Duration { return cmp.Or(s.Timeout, tool.TimeoutDefault) }
