package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/internal/redact"
)

// server is started when it is needed, and again when it has died.
type server struct {
	hub  *Hub
	key  string // in the hub
	def  Server
	dir  string
	gone chan struct{} // closed with the hub

	mu       sync.Mutex
	live     *live
	starting chan struct{} // closed when the start under way is over; nil: no start is under way
	failures int           // in a row
	retryAt  time.Time
	why      error       // of the last failure
	users    int         // calls that hold it, including those that wait for a start
	idle     *time.Timer // until an idle server is stopped
	closed   bool        // with the hub, or removed from it
}

// live is a server that answers.
type live struct {
	link    link
	session *sdk.ClientSession
	name    string
	began   time.Time
	over    chan struct{}  // closed when it has ended
	secrets *redact.Masker // of its definition
	tokens  atomic.Int64
	stale   atomic.Bool // it reported that its list has changed
	hear    sync.Map    // progress token -> *progress

	turn    chan struct{} // of capacity 1: its holder may request the list
	listing *Listing
}

// use returns the running server, started if need be. The caller must have taken it.
func (s *server) use(ctx context.Context) (*live, error) {
	for {
		s.mu.Lock()
		wait := s.starting
		pause := time.Until(s.retryAt)
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, ErrClosed
		case s.live != nil:
			l := s.live
			s.mu.Unlock()
			return l, nil
		case wait == nil && pause > patience:
			err := fmt.Errorf("%w: %s has failed %d times and is started again in %s; the last time: %w", ErrDown, s.def.Name, s.failures, pause.Round(time.Second), s.why)
			s.mu.Unlock()
			return nil, err
		case wait == nil && pause > 0:
			wait = nil
		case wait == nil:
			wait = make(chan struct{})
			if !s.hub.do(s.start) {
				s.mu.Unlock()
				return nil, ErrClosed
			}
			s.starting = wait
		}
		s.mu.Unlock()
		if err := s.await(ctx, wait, pause); err != nil {
			return nil, err
		}
	}
}

// patience is how long a call waits for a server that may be started again soon.
const patience = 5 * time.Second

// await waits for a start that is under way, or until there may be one. A start
// that failed is the error of all who waited for it.
func (s *server) await(ctx context.Context, started <-chan struct{}, pause time.Duration) error {
	if started == nil {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-s.gone:
			return ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case <-started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil && !s.closed {
		return s.why
	}
	return nil
}

// start makes one attempt. It is no part of the call that asked for it: others
// may wait for it too.
func (s *server) start() {
	ctx, cancel := context.WithTimeout(s.hub.life, ConnectTimeout)
	defer cancel()
	l, err := s.connect(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.starting)
	s.starting = nil
	switch {
	case err != nil:
		s.failed(err)
	case s.closed:
		s.hub.work.Go(l.close) // Close waits for us, and so for it
	default:
		s.live = l
		s.hub.work.Go(func() { s.watch(l) })
	}
	s.rest() // who asked for it may have gone
}

// failed requires the lock.
func (s *server) failed(why error) {
	s.failures++
	s.why = why
	s.retryAt = time.Now().Add(backoff(s.failures))
	s.hub.cfg.Logger.Warn("an MCP server failed", "server", s.def.Name, "times", s.failures, "error", why)
}

// backoff is the delay before the next start after that many failures in a row.
// The first failure causes none.
func backoff(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(BackoffMin<<min(failures-2, 16), BackoffMax)
}

// watch notices the end of a server.
func (s *server) watch(l *live) {
	ended := make(chan struct{})
	go func() { _ = l.session.Wait(); close(ended) }()
	var died <-chan struct{}
	if l.link.child != nil {
		died = l.link.child.Done()
	}
	select {
	case <-ended:
	case <-died:
	}
	close(l.over)
	s.mu.Lock()
	if s.live == l {
		s.live = nil
		if time.Since(l.began) > StableAfter {
			s.failures = 0
		}
		if !s.closed {
			s.failed(fmt.Errorf("%w: %s%s", ErrDied, s.def.Name, l.last()))
		}
		s.rest()
	}
	s.mu.Unlock()
	l.close()
	<-ended
}

// connect starts the server, greets it and asks for its tools.
func (s *server) connect(ctx context.Context) (*live, error) {
	def, err := s.def.Expand(s.hub.cfg.Getenv)
	if err != nil {
		return nil, err
	}
	l := &live{name: s.def.Name, began: time.Now(), over: make(chan struct{}), turn: make(chan struct{}, 1), secrets: redact.New(redact.Config{Values: s.secrets()})}
	if err := s.def.unchanged(s.dir, s.hub.cfg.Getenv); err != nil {
		return nil, told{l.shown(err.Error()), err}
	}
	if l.link, err = reach(def, s.dir, s.def.Own); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrStart, s.def.Name, told{l.shown(err.Error()), err})
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "troupe", Version: s.hub.cfg.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // the server may request nothing from us
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			if l.stale.Swap(true) {
				return // logged already, and the list was not requested since
			}
			s.hub.cfg.Logger.Warn("an MCP server says that its tools have changed", "server", s.def.Name)
		},
		ProgressNotificationHandler: l.progressed,
	})
	greeted := make(chan struct{})
	go func() { // ends a server that does not answer, and so the handshake
		select {
		case <-ctx.Done():
			l.link.close()
		case <-greeted:
		}
	}()
	l.session, err = client.Connect(ctx, l.link.transport, nil)
	if err == nil {
		_, err = l.offers(ctx)
	}
	close(greeted)
	if err == nil {
		return l, nil
	}
	l.close()
	return nil, fmt.Errorf("%w: %s: %s%s", ErrStart, s.def.Name, s.short(ctx, l, err), l.last())
}

// short is why a start failed, for a person.
func (s *server) short(ctx context.Context, l *live, err error) string {
	switch {
	case s.hub.life.Err() != nil:
		return "the node is ending"
	case ctx.Err() != nil:
		return "it did not answer within " + ConnectTimeout.String()
	case errors.Is(err, sdk.ErrConnectionClosed):
		return "it ended instead of answering"
	}
	return l.shown(err.Error())
}

// secrets are the values that came out of variables, and all headers.
func (s *server) secrets() []string {
	var values []string
	for _, name := range s.def.Variables() {
		values = append(values, s.hub.cfg.Getenv(name))
	}
	def, err := s.def.Expand(s.hub.cfg.Getenv)
	if err != nil {
		return values
	}
	for _, v := range def.Headers {
		_, token, _ := strings.Cut(v, " ") // Bearer …
		values = append(values, v, token)
	}
	for k, v := range def.Env {
		if redact.New(redact.Config{}).Text(k+"="+v) != k+"="+v {
			values = append(values, v)
		}
	}
	return values
}

// close ends the server for good.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	l := s.live
	s.live = nil
	if s.idle != nil {
		s.idle.Stop()
	}
	s.mu.Unlock()
	close(s.gone)
	if l != nil {
		l.close()
	}
}

// drop gives a server up that does not answer as it should.
func (s *server) drop(l *live, why error) {
	s.mu.Lock()
	mine := s.live == l
	if mine {
		s.live = nil
		s.failed(why)
	}
	s.mu.Unlock()
	if mine {
		s.end(l)
	}
}

// close ends the session and its server. Closing the session of a program only
// closes its stdin.
func (l *live) close() {
	if l.session != nil && l.link.child == nil {
		_ = l.session.Close() // it is gone either way
	}
	l.link.close()
	if l.session != nil {
		_ = l.session.Close()
	}
}

// shown prepares a server's text for a person: redacted, then clipped. Redaction
// would not recognize a secret that is cut.
func (l *live) shown(text string) string { return clip(l.secrets.Text(visible(text)), stderrShown) }

// told is an error that shows a person another text than its own.
type told struct {
	text string
	error
}

func (t told) Error() string { return t.text }

func (t told) Unwrap() error { return t.error }

// last returns the end of what the server wrote to stderr.
func (l *live) last() string {
	text := l.secrets.Text(l.link.last())
	if len(text) > stderrShown {
		text = "…" + strings.ToValidUTF8(text[len(text)-stderrShown:], "")
	}
	if text == "" {
		return ""
	}
	return "; it said: " + text
}

// offers returns what the server offers now: listed again if it reported a change.
func (l *live) offers(ctx context.Context) (Listing, error) {
	select { // no lock: a call that waits for another call's answer has a timeout of its own
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return Listing{}, context.Cause(ctx)
	}
	if l.listing != nil && !l.stale.Swap(false) {
		return *l.listing, nil
	}
	found, err := list(ctx, l.session, l.name)
	if err != nil {
		l.stale.Store(l.listing != nil)
		return Listing{}, err
	}
	l.listing = &found
	return found, nil
}
