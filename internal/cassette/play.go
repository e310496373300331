package cassette

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/model"
)

// Player is a transport that answers from a cassette and never from a network.
// It is safe for concurrent use.
//
// The player finds an exchange by the content of its request: method, path, parameters
// and the values of its JSON body. So the order in which parallel agents send requests
// does not matter; equal requests, as of a retry, get the recorded answers in
// their order. Each exchange is played once. A request that was not recorded is refused,
// and the error states how it differs from the most similar recorded request.
type Player struct {
	dir   string
	label Label
	clean secretCleaner

	mu   sync.Mutex
	dirs []string // directories that replace the recorded one
	left map[[sha256.Size]byte][]*tapedExchange
	all  []*tapedExchange
}

// tapedExchange is a recorded exchange and the form in which its request is compared.
type tapedExchange struct {
	exchange
	file   string
	asked  askedRequest
	played bool
}

// PlayConfig of a Player.
type PlayConfig struct {
	Dir string
	// Scrub is what Config.Scrub was: the player removes the secrets of a new request, too,
	// before it compares.
	Scrub func(string) string
}

// NewPlayer reads a cassette.
func NewPlayer(cfg PlayConfig) (*Player, error) {
	p := &Player{dir: cfg.Dir, clean: cfg.Scrub, left: map[[sha256.Size]byte][]*tapedExchange{}}
	if err := readFile(cfg.Dir, labelName, &p.label); err != nil {
		return nil, err
	}
	if p.label.Version != Version {
		return nil, fmt.Errorf("%w: %s is of form %d, this program knows %d", ErrCassette, filepath.Join(cfg.Dir, labelName), p.label.Version, Version)
	}
	names, err := exchangeFiles(cfg.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t := &tapedExchange{file: name}
		if err := readFile(cfg.Dir, name, &t.exchange); err != nil {
			return nil, err
		}
		if err := t.checkExchange(); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrCassette, filepath.Join(cfg.Dir, name), err)
		}
		p.all = append(p.all, t)
	}
	slices.SortStableFunc(p.all, func(a, b *tapedExchange) int { return a.N - b.N })
	for _, t := range p.all {
		t.asked = p.reduceRequest(t.Request.Method, t.Request.URL, t.Request.bodyBytes(), []string{p.label.Dir})
		p.left[t.asked.key] = append(p.left[t.asked.key], t)
	}
	return p, nil
}

// checkExchange rejects an exchange that a Recorder does not write.
func (t *tapedExchange) checkExchange() error {
	switch {
	case t.Version != Version:
		return fmt.Errorf("form %d, this program knows %d", t.Version, Version)
	case t.Request.Method == "" || t.Request.URL == "":
		return errors.New("it has no request")
	case t.Response == nil && t.Failure == nil:
		return errors.New("it has neither a response nor a failure")
	case t.Response != nil && (t.Response.Status < 100 || t.Response.Status > 599):
		return fmt.Errorf("%d is no status", t.Response.Status)
	}
	return nil
}

// Label returns the label of the cassette.
func (p *Player) Label() Label { return p.label }

// At registers that a run works in dir: in its requests dir replaces the directory
// of the recording.
func (p *Player) At(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dir != "" && !slices.Contains(p.dirs, dir) {
		p.dirs = append(p.dirs, dir)
	}
}

// Played is how many exchanges were played, and how many there are.
func (p *Player) Played() (played, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.all {
		if t.played {
			played++
		}
	}
	return played, len(p.all)
}

// askedRequest is a request as it is compared.
type askedRequest struct {
	key    [sha256.Size]byte
	to     string // method, path and parameters
	text   string // the body with the keys of objects in order
	parsed any    // of the body, if it is JSON
}

// here replaces the directory of a run.
const here = "{dir}"

// reduceRequest returns the parts of a request that are compared. The host is not one of them.
func (p *Player) reduceRequest(method, address string, body []byte, dirs []string) askedRequest {
	a := askedRequest{to: method + " " + address}
	if u, err := url.Parse(address); err == nil {
		a.to = method + " " + u.EscapedPath()
		if q := u.Query().Encode(); q != "" {
			a.to += "?" + q
		}
	}
	a.text = p.clean.cleanText(string(body))
	for _, dir := range dirs {
		if quoted, err := json.Marshal(dir); err == nil && len(dir) > 1 {
			a.text = strings.ReplaceAll(a.text, string(quoted[1:len(quoted)-1]), here)
		}
	}
	d := json.NewDecoder(strings.NewReader(a.text))
	d.UseNumber()
	if d.Decode(&a.parsed) == nil {
		if ordered, err := json.Marshal(a.parsed); err == nil {
			a.text = string(ordered)
		}
	}
	a.key = sha256.Sum256([]byte(a.to + "\x00" + a.text))
	return a
}

// RoundTrip answers a request from the cassette.
func (p *Player) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	t, err := p.takeExchange(req, body)
	if err != nil {
		return nil, err
	}
	if t.Response == nil {
		return nil, t.Failure.replayedError()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	header := t.Response.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{Status: fmt.Sprintf("%d %s", t.Response.Status, http.StatusText(t.Response.Status)), StatusCode: t.Response.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, ContentLength: -1, Request: req,
		Body: &playedBody{ctx: req.Context(), t: t}}, nil
}

// takeExchange finds the exchange of a request, and uses it up.
func (p *Player) takeExchange(req *http.Request, body []byte) (*tapedExchange, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.reduceRequest(req.Method, p.clean.cleanURL(req.URL), body, p.dirs)
	list := p.left[a.key]
	if len(list) == 0 {
		return nil, p.mismatchError(a)
	}
	p.left[a.key] = list[1:]
	list[0].played = true
	return list[0], nil
}

// playedBody is the body of a response that is played.
type playedBody struct {
	ctx  context.Context
	t    *tapedExchange
	at   int
	rest bytes.Reader
}

// Read gives a chunk at a time, as it was read when it was recorded.
func (b *playedBody) Read(into []byte) (int, error) {
	for b.rest.Len() == 0 {
		if err := b.ctx.Err(); err != nil {
			return 0, err
		}
		if b.at == len(b.t.Response.Chunks) {
			return 0, b.endBody()
		}
		c := b.t.Response.Chunks[b.at]
		b.at++
		b.rest.Reset(c.chunkBytes())
	}
	return b.rest.Read(into)
}

func (b *playedBody) endBody() error {
	switch {
	case b.t.Failure != nil:
		return b.t.Failure.replayedError()
	case b.t.Response.Cut:
		return &model.Error{Class: model.Undecodable, Message: fmt.Sprintf("the recording %s holds only the first %d bytes of the response", b.t.file, BodyBytesMax)}
	}
	return io.EOF
}

func (b *playedBody) Close() error { return nil }

// replayedError is the error that adapters make the same of as of the one recorded.
func (f *failure) replayedError() error {
	switch {
	case f.Class != "":
		return &model.Error{Class: f.Class, Unbilled: f.Unbilled, Message: f.Text}
	case f.Dial:
		return dialFailure{*f}
	case f.Text == io.ErrUnexpectedEOF.Error():
		return io.ErrUnexpectedEOF
	case f.Text == io.EOF.Error(): // the server hung up before its headers
		return io.EOF
	}
	return errors.New(f.Text)
}

// dialFailure is a connection that was not made when it was recorded.
type dialFailure struct{ f failure }

func (d dialFailure) Error() string { return d.f.Text }

func (d dialFailure) Unwrap() []error {
	all := []error{&net.OpError{Op: "dial", Net: "tcp", Err: errors.New(d.f.Text)}}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if d.f.Text == end.Error() {
			all = append(all, end)
		}
	}
	switch {
	case d.f.NoTLS:
		all = append(all, tls.RecordHeaderError{Msg: d.f.Text})
	case d.f.Untrusted:
		all = append(all, &tls.CertificateVerificationError{Err: errors.New(d.f.Text)})
	}
	return all
}
