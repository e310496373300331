package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/redact"
)

// serverProcess is started when it is needed, and again when it has died.
type serverProcess struct {
	hub  *Hub
	key  string // in the hub
	def  Server
	dir  string
	gone chan struct{} // closed with the hub

	mu       sync.Mutex
	live     *liveSession
	starting chan struct{} // closed when the start under way is over; nil: no start is under way
	failures int           // in a row
	retryAt  time.Time
	why      error       // of the last failure
	users    int         // calls that hold it, including those that wait for a start
	idle     *time.Timer // until an idle server is stopped
	closed   bool        // with the hub, or removed from it
}

// liveSession is a server that answers.
type liveSession struct {
	link    serverLink
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

// acquireSession returns the running server, started if need be. The caller must have taken it.
func (s *serverProcess) acquireSession(ctx context.Context) (*liveSession, error) {
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
			if !s.hub.runBackground(s.startOnce) {
				s.mu.Unlock()
				return nil, ErrClosed
			}
			s.starting = wait
		}
		s.mu.Unlock()
		if err := s.awaitStart(ctx, wait, pause); err != nil {
			return nil, err
		}
	}
}

// patience is how long a call waits for a server that may be started again soon.
const patience = 5 * time.Second

// awaitStart waits for a start that is under way, or until there may be one. A start
// that failed is the error of all who waited for it.
func (s *serverProcess) awaitStart(ctx context.Context, started <-chan struct{}, pause time.Duration) error {
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

// startOnce makes one attempt. It is no part of the call that asked for it: others
// may wait for it too.
func (s *serverProcess) startOnce() {
	ctx, cancel := context.WithTimeout(s.hub.life, ConnectTimeout)
	defer cancel()
	l, err := s.connectServer(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.starting)
	s.starting = nil
	switch {
	case err != nil:
		s.noteFailure(err)
	case s.closed:
		s.hub.work.Go(l.closeSession) // Close waits for us, and so for it
	default:
		s.live = l
		s.hub.work.Go(func() { s.watchEnd(l) })
	}
	s.stopIdle() // who asked for it may have gone
}

// noteFailure requires the lock.
func (s *serverProcess) noteFailure(why error) {
	s.failures++
	s.why = why
	s.retryAt = time.Now().Add(startDelay(s.failures))
	s.hub.cfg.Logger.Warn("an MCP server failed", "server", s.def.Name, "times", s.failures, "error", why)
}

// startDelay is the delay before the next start after that many failures in a row.
// The first failure causes none.
func startDelay(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(BackoffMin<<min(failures-2, 16), BackoffMax)
}

// watchEnd notices the end of a server.
func (s *serverProcess) watchEnd(l *liveSession) {
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
			s.noteFailure(fmt.Errorf("%w: %s%s", ErrDied, s.def.Name, l.lastStderr()))
		}
		s.stopIdle()
	}
	s.mu.Unlock()
	l.closeSession()
	<-ended
}

// connectServer starts the server, greets it and asks for its tools.
func (s *serverProcess) connectServer(ctx context.Context) (*liveSession, error) {
	def, err := s.def.expandVariables(s.hub.cfg.Getenv)
	if err != nil {
		return nil, err
	}
	l := &liveSession{name: s.def.Name, began: time.Now(), over: make(chan struct{}), turn: make(chan struct{}, 1), secrets: redact.New(redact.Config{Values: s.secretValues()})}
	if err := s.def.checkUnchanged(s.dir, s.hub.cfg.Getenv); err != nil {
		return nil, displayError{l.shownText(err.Error()), err}
	}
	if l.link, err = openLink(def, s.dir, s.def.Own); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrStart, s.def.Name, displayError{l.shownText(err.Error()), err})
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "troupe", Version: s.hub.cfg.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // the server may request nothing from us
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			if l.stale.Swap(true) {
				return // logged already, and the list was not requested since
			}
			s.hub.cfg.Logger.Warn("an MCP server reports that its tools have changed", "server", s.def.Name)
		},
		ProgressNotificationHandler: l.noteProgress,
	})
	greeted := make(chan struct{})
	go func() { // ends a server that does not answer, and so the handshake
		select {
		case <-ctx.Done():
			l.link.closeLink()
		case <-greeted:
		}
	}()
	l.session, err = client.Connect(ctx, l.link.transport, nil)
	if err == nil {
		_, err = l.currentOffers(ctx)
	}
	close(greeted)
	if err == nil {
		return l, nil
	}
	l.closeSession()
	return nil, fmt.Errorf("%w: %s: %s%s", ErrStart, s.def.Name, s.failureText(ctx, l, err), l.lastStderr())
}

// failureText is why a start failed, for a person.
func (s *serverProcess) failureText(ctx context.Context, l *liveSession, err error) string {
	switch {
	case s.hub.life.Err() != nil:
		return "the node is ending"
	case ctx.Err() != nil:
		return "it did not answer within " + ConnectTimeout.String()
	case errors.Is(err, sdk.ErrConnectionClosed):
		return "it ended instead of answering"
	}
	return l.shownText(err.Error())
}

// secretValues are the values that came out of variables, and all headers.
func (s *serverProcess) secretValues() []string {
	var values []string
	for _, name := range s.def.Variables() {
		values = append(values, s.hub.cfg.Getenv(name))
	}
	def, err := s.def.expandVariables(s.hub.cfg.Getenv)
	if err != nil {
		return values
	}
	for _, v := range def.Headers {
		_, token, _ := strings.Cut(v, " ") // Bearer …
		values = append(values, v, token)
	}
	for k, v := range def.Env {
		if redact.New(redact.Config{}).MaskText(k+"="+v) != k+"="+v {
			values = append(values, v)
		}
	}
	return values
}

// closeServer ends the server for good.
func (s *serverProcess) closeServer() {
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
		l.closeSession()
	}
}

// dropSession gives a server up that does not answer as it should.
func (s *serverProcess) dropSession(l *liveSession, why error) {
	s.mu.Lock()
	mine := s.live == l
	if mine {
		s.live = nil
		s.noteFailure(why)
	}
	s.mu.Unlock()
	if mine {
		s.endSession(l)
	}
}

// closeSession ends the session and its server. Closing the session of a program only
// closes its stdin.
func (l *liveSession) closeSession() {
	if l.session != nil && l.link.child == nil {
		_ = l.session.Close() // it is gone either way
	}
	l.link.closeLink()
	if l.session != nil {
		_ = l.session.Close()
	}
}

// shownText prepares a server's text for a person: redacted, then clipped. Redaction
// would not recognize a secret that is cut.
func (l *liveSession) shownText(text string) string {
	return clip.Marked(l.secrets.MaskText(visibleText(text)), stderrShown, "…")
}

// displayError is an error that shows a person another text than its own.
type displayError struct {
	text string
	error
}

func (t displayError) Error() string { return t.text }

func (t displayError) Unwrap() error { return t.error }

// lastStderr returns the end of what the server wrote to stderr.
func (l *liveSession) lastStderr() string {
	text := l.secrets.MaskText(l.link.lastStderr())
	if len(text) > stderrShown {
		text = "…" + strings.ToValidUTF8(text[len(text)-stderrShown:], "")
	}
	if text == "" {
		return ""
	}
	return "; its output: " + text
}

// currentOffers returns what the server offers now: listed again if it reported a change.
func (l *liveSession) currentOffers(ctx context.Context) (Listing, error) {
	select { // no lock: a call that waits for another call's answer has a timeout of its own
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return Listing{}, context.Cause(ctx)
	}
	if l.listing != nil && !l.stale.Swap(false) {
		return *l.listing, nil
	}
	found, err := listTools(ctx, l.session, l.name)
	if err != nil {
		l.stale.Store(l.listing != nil)
		return Listing{}, err
	}
	l.listing = &found
	return found, nil
}
