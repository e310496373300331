// Package web provides http_get, which reads one page of the public web, for a model that
// may be manipulated by the text that it reads. The operator decides what can be
// reached: hosts by name, and no address of the machine or its network, wherever a
// name or a redirect leads.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Name of the tool.
const Name = "http_get"

// Limits of one call.
const (
	TimeoutDefault = 30 * time.Second
	BodyBytesMax   = 2 << 20
	RedirectsMax   = 5
	headerBytesMax = 64 << 10
	dialTimeout    = 10 * time.Second
	errorShown     = 500 // bytes of the body of a response that is no success
	urlBytesMax    = 4096
	// patienceMax is about how long the loop tries a call again (CONFORMANCE C5): who
	// asks for more is not asked again.
	patienceMax = 8 * time.Second
)

// Config of http_get.
type Config struct {
	// Allow are the hosts that may be read: "docs.example.com", "*.example.com" for
	// all hosts below it, "*" for any; a suffix ":8080" allows that port instead of
	// the scheme's default. Default: none.
	Allow []string
	// Private are addresses of this machine and its networks that the tool may
	// reach nevertheless: "127.0.0.1:8080", "10.1.2.3", "10.1.0.0/16". Default: none.
	Private []string
	// Timeout bounds a call. Default TimeoutDefault.
	Timeout time.Duration
}

// Errors that a model reads; each states the remedy, and whether the model or the operator has it.
var (
	ErrHost    = errors.New("is not allowed; the operator allows hosts with `tools: {http_get: {allow: [HOST]}}` in the user's troupe.yaml")
	ErrPrivate = errors.New("is an address of this machine or a private network, which is not read; the operator may except it with `tools: {http_get: {private: [ADDRESS]}}` in the user's troupe.yaml")
	ErrURL     = errors.New("is not an address that can be read; give https://HOST/PATH without a user name")
	errHops    = fmt.Errorf("it led on %d times", RedirectsMax)
	errDown    = errors.New("it led from https to http")
	errAway    = errors.New("on another host, which this call does not read; ask for that address if it is needed")
)

type pageGetter struct {
	hosts   []hostRule
	private []addressException
	own     func() ([]net.Addr, error) // the addresses of this machine
	client  *http.Client
}

// Get makes http_get.
func Get(cfg Config) (tool.Tool, error) {
	g := &pageGetter{own: net.InterfaceAddrs}
	for _, text := range cfg.Allow {
		r, err := parseHost(text)
		if err != nil {
			return nil, err
		}
		g.hosts = append(g.hosts, r)
	}
	for _, text := range cfg.Private {
		e, err := parseException(text)
		if err != nil {
			return nil, err
		}
		g.private = append(g.private, e)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = TimeoutDefault
	}
	// No proxy: it would resolve and reach addresses that the tool must not. No connection
	// is kept, so no call reuses a connection that was made under the rules of another.
	dialer := &net.Dialer{Timeout: dialTimeout, Control: g.checkDialed}
	g.client = &http.Client{CheckRedirect: g.checkRedirect, Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true,
		TLSHandshakeTimeout: dialTimeout, MaxResponseHeaderBytes: headerBytesMax, ForceAttemptHTTP2: true}}
	return tool.New(Name, "Read a page or file of the web as text.", model.Read,
		func(ctx context.Context, in getArgs, _ tool.Call) (string, error) { return g.fetchPage(ctx, in.URL) }, tool.Timeout(cfg.Timeout))
}

type getArgs struct {
	URL string `json:"url"`
}

func (g *pageGetter) fetchPage(ctx context.Context, text string) (string, error) {
	if len(text) > urlBytesMax {
		return "", fmt.Errorf("the address has %d bytes, at most %d are allowed", len(text), urlBytesMax)
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return "", fmt.Errorf("%.200q %w", text, ErrURL)
	}
	if err := g.admitsURL(u); err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("%.200q %w", text, ErrURL)
	}
	req.Header.Set("User-Agent", "troupe")
	req.Header.Set("Accept", "text/html, text/plain, application/json, text/*;q=0.9, */*;q=0.1")
	res, err := g.client.Do(req)
	if err != nil {
		return "", plainError(ctx, u, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, BodyBytesMax+1))
	if err != nil {
		return "", plainError(ctx, res.Request.URL, err)
	}
	cut := len(body) > BodyBytesMax
	body = body[:min(len(body), BodyBytesMax)]
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return "", responseError(res, body)
	}
	shown, err := readableText(res, body)
	if err != nil {
		return "", err
	}
	if cut {
		shown += fmt.Sprintf("\n[only the first %d bytes were read]", BodyBytesMax)
	}
	return fmt.Sprintf("[%s %s]\n%s", res.Request.URL.Redacted(), res.Header.Get("Content-Type"), shown), nil
}

// admitsURL checks an address by its name; where the name leads is checked when it
// is dialed.
func (g *pageGetter) admitsURL(u *url.URL) error {
	if (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return fmt.Errorf("%.200q %w", u.Redacted(), ErrURL)
	}
	for _, r := range g.hosts {
		if r.admitsHost(u) {
			return nil
		}
	}
	return fmt.Errorf("%.200q %w", u.Host, ErrHost)
}

// checkRedirect follows within one host, as far as a model itself might have asked. An address on another host is
// another call: rules about hosts decide about it, and they are not known here.
func (g *pageGetter) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > RedirectsMax {
		return errHops
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme == "http" {
		return errDown
	}
	req.Header.Del("Referer")
	if err := g.admitsURL(req.URL); err != nil {
		return err
	}
	if plainHost(req.URL) != plainHost(via[0].URL) {
		return fmt.Errorf("it leads to %s %w", tool.Clip(req.URL.Redacted(), urlBytesMax), errAway)
	}
	return nil
}

// plainHost is the host of an address without its port, as rules compare it.
func plainHost(u *url.URL) string {
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// checkDialed sees the address that a name was looked up to, just before it is
// connected to: nothing can change it any more.
func (g *pageGetter) checkDialed(_, address string, _ syscall.RawConn) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q %w", address, ErrPrivate)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("%q %w", address, ErrPrivate)
	}
	for _, e := range g.private {
		if e.coversAddress(host, uint16(n)) {
			return nil
		}
	}
	// Services that listen on all addresses are reached by a public one of this machine,
	// too, from inside of its packet filter.
	if own, err := g.own(); err == nil && Public(host) && !isOwn(host, own) {
		return nil
	}
	return fmt.Errorf("%s %w", address, ErrPrivate)
}

// plainError returns the error without the text that url.Error repeats.
func plainError(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return err
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return fmt.Errorf("%s: %w", u.Hostname(), err)
}

// responseError turns an unsuccessful response into an error. An overloaded or failing server
// may be asked again, but not before its Retry-After.
func responseError(res *http.Response, body []byte) error {
	text := fmt.Sprintf("HTTP %s from %s", res.Status, res.Request.URL.Hostname())
	passes := res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented
	if after, ok := retryAfter(res.Header.Get("Retry-After"), time.Now()); ok {
		text += fmt.Sprintf("; it asks to wait %s", after)
		passes = passes && after <= patienceMax
	}
	if isTextual(res) && len(body) > 0 {
		if shown, err := readableText(res, body); err == nil {
			text += "\n" + tool.Clip(shown, errorShown)
		}
	}
	if passes {
		return tool.Transient(errors.New(text))
	}
	return errors.New(text)
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < 1<<31 {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0).Round(time.Second), true
	}
	return 0, false
}

func mediaType(res *http.Response) string {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

func isTextual(res *http.Response) bool {
	kind := mediaType(res)
	return kind == "" || strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") ||
		kind == "application/json" || kind == "application/xml" || kind == "application/javascript" || kind == "application/yaml"
}

// readableText is the text of a body: a page as Markdown, other text as it is.
func readableText(res *http.Response, body []byte) (string, error) {
	kind := mediaType(res)
	if !isTextual(res) || bytes.IndexByte(body, 0) >= 0 {
		return "", fmt.Errorf("%s is %d bytes of %s, which is not text", res.Request.URL.Redacted(), len(body), kind)
	}
	body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	if kind != "text/html" && kind != "application/xhtml+xml" {
		return string(body), nil
	}
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("the page cannot be read: %w", err)
	}
	if nestingCost(root, 0) > nestingMax {
		return "", errors.New("the page cannot be read: its quotes or lists are nested too deeply")
	}
	// Without escapes: a model needs none, and deciding where they are needed takes
	// quadratic time on a page of "[".
	to := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin()), converter.WithEscapeMode(converter.EscapeModeDisabled))
	page, err := to.ConvertNode(root, converter.WithDomain(res.Request.URL.String()))
	if err != nil {
		return "", fmt.Errorf("the page cannot be read: %w", err)
	}
	return string(page), nil
}

// nestingMax bounds the work of a page: each quote and list writes all lines in it
// anew, with a mark before each.
const nestingMax = 20_000_000

// nestingCost is about that work.
func nestingCost(n *html.Node, depth int) (cost int) {
	if n.DataAtom == atom.Blockquote || n.DataAtom == atom.Li {
		depth++
	}
	cost = depth * depth
	for c := range n.ChildNodes() {
		cost += nestingCost(c, depth)
	}
	return cost
}
