package modelhttp

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/model"
)

// Bounds on the connections that wait for the next request. http.DefaultTransport keeps two
// for each host, so agents that call one provider over HTTP/1.1 at the same time would open
// a connection for nearly every turn.
const (
	MaxIdleConnsPerHost = 256
	MaxIdleConns        = 512
	// IdleConnTimeout is shorter than the time after which most servers close a connection:
	// a request that meets this close fails, and may have been billed.
	IdleConnTimeout = 30 * time.Second
)

// sharedTransport is http.DefaultTransport with these bounds.
var sharedTransport = func() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = MaxIdleConns, MaxIdleConnsPerHost, IdleConnTimeout
	return t
}()

// SharedTransport is the transport of all clients that are given none.
func SharedTransport() http.RoundTripper { return sharedTransport }

// ParseBaseURL refuses an address to which no request can be sent.
func ParseBaseURL(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &model.Error{Class: model.Misconfigured, Unbilled: true, Message: "the base URL is not an http or https URL" + suggestURL(base)}
	}
	return u, nil
}

// hostPattern matches an address without a scheme, as people type it. A key that stands in the wrong variable does
// not match, and is not shown.
var hostPattern = lazyregexp.New(`^(localhost|[0-9]+(\.[0-9]+){3}|[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]{1,5}|/v[0-9]))(:[0-9]{1,5})?(/[a-z0-9/._-]*)?$`)

// suggestURL returns the end of a message about an address to which no request can be sent.
func suggestURL(base string) string {
	if scheme, _, ok := strings.Cut(base, "://"); ok && len(scheme) < len("https")+3 {
		return fmt.Sprintf(": its scheme is %q", scheme)
	}
	if len(base) > urlShown || !hostPattern.MatchString(base) {
		return "; write https://HOST/v1 or http://HOST:PORT/v1"
	}
	u, err := url.Parse("http://" + base)
	if err != nil {
		return ""
	}
	scheme := "https://"
	if host := u.Hostname(); host == "localhost" || net.ParseIP(host) != nil {
		scheme = "http://"
	}
	return ": it has no scheme; did you mean " + scheme + base + "?"
}

const urlShown = 120 // bytes of an address in an error

// CheckKeys refuses a key with a control character, such as the end of the line of a file that it
// was read from: no header can carry it. The error does not show the key.
func CheckKeys(keys ...string) error {
	for _, key := range keys {
		if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return &model.Error{Class: model.Misconfigured, Unbilled: true, Message: "the API key contains a control character, such as the end of a line"}
		}
	}
	return nil
}

// Endpoint is an address to which an adapter posts requests, with their headers.
type Endpoint struct{ template *http.Request }

// userAgent names troupe to providers.
const userAgent = "troupe"

// NewEndpoint returns the endpoint at an address. The headers are those of the provider, in
// pairs of name and value; a header without a value is not sent.
func NewEndpoint(to *url.URL, headers ...string) Endpoint {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {userAgent}}
	for i := 1; i < len(headers); i += 2 {
		if headers[i] != "" {
			h.Set(headers[i-1], headers[i])
		}
	}
	request := &http.Request{Method: http.MethodPost, URL: to, Host: to.Host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if u := to.User; u != nil && h.Get("Authorization") == "" {
		password, _ := u.Password()
		request.SetBasicAuth(u.Username(), password)
	}
	return Endpoint{request}
}

// JoinPath returns the address of a path below a base URL. The parameters of a base URL are
// not part of it.
func JoinPath(base *url.URL, path string) *url.URL {
	dir := *base
	if dir.Path != "" && !strings.HasSuffix(dir.Path, "/") {
		dir.Path += "/"
		if dir.RawPath != "" {
			dir.RawPath += "/"
		}
	}
	return dir.ResolveReference(&url.URL{Path: path})
}
