package jetstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/mailbox"
)

const (
	// InFlightMax is how many appends may wait for their acknowledgement. Later ones queue in
	// memory, so the caller never waits.
	InFlightMax = 4096
	// inFlightBytesMax is the same limit in bytes.
	inFlightBytesMax = 16 << 20
	// retryPause is how long an append waits after the answer that no server can store it now
	// (no leader, stream not yet there).
	retryPause = 250 * time.Millisecond
	// retryAfterMax limits the time between two copies of one append, as a multiple of
	// RetryAfter: each copy waits twice as long as the one before. A server that is only slow
	// stores every copy it gets, and is slower for it.
	retryAfterMax = 8

	tokenBase = 36 // of the last token of a reply subject
)

// ErrRefused says that the server will not store the entry, for a reason that a retry does
// not change. The entry was not appended.
var ErrRefused = errors.New("jetstream: append refused")

// pendingAppend is one append in flight or queued.
type pendingAppend struct {
	subject string
	from    *ackParser // of its acknowledgement
	data    []byte
	done    func(uint64, error)
	ctx     context.Context
	unhook  func() bool
	token   uint64 // 0 while it is queued
	born    time.Time
	said    string // the server's last answer

	due  time.Time
	wait time.Duration // between the last copy and due
}

// appender publishes entries and matches their acknowledgements, which all arrive at one
// wildcard inbox: no goroutine, channel or subscription per append.
type appender struct {
	nc     *nats.Conn
	inbox  string
	sub    *nats.Subscription
	retry  time.Duration
	logger *slog.Logger

	mu       sync.Mutex
	inFlight map[uint64]*pendingAppend
	bytes    int
	token    uint64
	// due holds the appends in flight by the time of their next copy.
	due   dueAppends
	timer *time.Timer
	armed bool
	fires time.Time // when the timer fires, if it is armed
	// queue holds the appends beyond InFlightMax, from queue[head] on.
	queue  []*pendingAppend
	head   int
	closed bool
	stalls stallReports
	// ignored counts messages that are not acknowledgements.
	ignored uint64
}

func newAppender(nc *nats.Conn, cfg *Config) (*appender, error) {
	a := &appender{nc: nc, retry: cfg.RetryAfter, logger: cfg.Logger, inbox: nc.NewInbox() + "." + rand.Text() + ".", inFlight: map[uint64]*pendingAppend{},
		stalls: stallReports{after: cfg.StallAfter, tell: cfg.Stalled}}
	a.timer = time.AfterFunc(time.Hour, a.sendOverdue)
	a.timer.Stop()
	sub, err := nc.Subscribe(a.inbox+"*", a.handleAck)
	if err != nil {
		return nil, err
	}
	a.sub = sub
	// Acknowledgements are small, and there are as many as appends in flight.
	return a, sub.SetPendingLimits(-1, -1)
}

func (a *appender) close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	a.timer.Stop()
	if a.stalls.rest != nil {
		a.stalls.rest.Stop()
	}
	var left []*pendingAppend
	for _, l := range a.inFlight {
		left = append(left, l)
	}
	left = append(left, a.queue[a.head:]...)
	a.inFlight, a.queue, a.head, a.due = map[uint64]*pendingAppend{}, nil, 0, dueAppends{}
	a.mu.Unlock()
	for _, l := range left {
		a.endAppend(l, 0, mailbox.ErrClosed)
	}
	if err := a.sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("jetstream: close: %w", err)
	}
	return nil
}

// endAppend reports the result to the caller. It is called once per append, by the function that
// removed it from the appends in flight or from the queue, and never under mu.
func (a *appender) endAppend(l *pendingAppend, place uint64, err error) {
	if l.unhook != nil {
		l.unhook()
	}
	if err != nil {
		err = fmt.Errorf("jetstream: append to %s: %w", l.subject, err)
	}
	l.done(place, err)
}

func (a *appender) queueAppend(ctx context.Context, from *ackParser, subject string, data []byte, done func(uint64, error)) {
	l := &pendingAppend{subject: subject, from: from, data: data, done: done, ctx: ctx, born: time.Now()}
	if len(data) > mailbox.EntryBytesMax {
		a.endAppend(l, 0, fmt.Errorf("%d bytes: %w", len(data), mailbox.ErrTooLarge))
		return
	}
	if ctx.Err() != nil {
		a.endAppend(l, 0, fmt.Errorf("%w: %w", mailbox.ErrClosed, context.Cause(ctx)))
		return
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		a.endAppend(l, 0, mailbox.ErrClosed)
		return
	}
	if ctx.Done() != nil {
		// mu is held, so that cancel waits until the append is registered.
		l.unhook = context.AfterFunc(ctx, func() { a.cancelAppend(l) })
	}
	if len(a.queue) > a.head || !a.hasRoom(len(data)) {
		a.queue = append(a.queue, l)
		a.mu.Unlock()
		return
	}
	a.registerAppend(l)
	a.mu.Unlock()
	a.sendAppends(l)
}

func (a *appender) hasRoom(size int) bool {
	return len(a.inFlight) < InFlightMax && (a.bytes+size <= inFlightBytesMax || len(a.inFlight) == 0)
}

// registerAppend adds an append to those in flight. mu is held.
func (a *appender) registerAppend(l *pendingAppend) {
	a.token++
	l.token = a.token
	a.inFlight[l.token] = l
	a.bytes += len(l.data)
	l.wait = a.retry
	a.due.schedule(l, time.Now().Add(a.retry))
	a.armTimer()
}

// scheduleCopy sets when an append in flight is sent again. mu is held.
func (a *appender) scheduleCopy(l *pendingAppend, after time.Duration) {
	a.due.schedule(l, time.Now().Add(after))
	a.armTimer()
}

// armTimer sets the timer to the first append that is due. mu is held.
func (a *appender) armTimer() {
	next, waits := a.due.next()
	if !waits || a.armed && !next.Before(a.fires) {
		return
	}
	a.armed, a.fires = true, next
	a.timer.Reset(time.Until(a.fires))
}

// takeAppend removes an append from those in flight and returns the queued ones for which there is
// room now. mu is held.
func (a *appender) takeAppend(l *pendingAppend) (follow []*pendingAppend) {
	delete(a.inFlight, l.token)
	a.bytes -= len(l.data)
	a.due.remove(l)
	for a.head < len(a.queue) && a.hasRoom(len(a.queue[a.head].data)) {
		follow = append(follow, a.queue[a.head])
		a.registerAppend(a.queue[a.head])
		a.queue[a.head] = nil
		a.head++
	}
	if a.head == len(a.queue) {
		a.queue, a.head = a.queue[:0], 0
	}
	return follow
}

// sendAppends publishes appends, and replaces those that could not even be published by queued ones.
func (a *appender) sendAppends(letters ...*pendingAppend) {
	for len(letters) > 0 {
		l := letters[0]
		letters = letters[1:]
		if err := a.publishAppend(l); err != nil {
			letters = append(letters, a.endInFlight(l.token, 0, err)...)
		}
	}
}

// publishAppend returns only definite errors.
func (a *appender) publishAppend(l *pendingAppend) error {
	err := a.nc.PublishRequest(l.subject, a.inbox+strconv.FormatUint(l.token, tokenBase), l.data)
	switch {
	case err == nil:
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%d bytes, the server takes %d: %w", len(l.data), a.nc.MaxPayload(), mailbox.ErrTooLarge)
	case errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("%w: %w", mailbox.ErrClosed, err)
	default:
		// The append was not sent (the buffer for a reconnect is full): its timer sends it
		// again.
		a.logger.Debug("append not sent", "subject", l.subject, "error", err)
	}
	return nil
}

// endInFlight ends the append with a token, if it is still in flight, and returns the queued ones
// to send in its place.
func (a *appender) endInFlight(token, place uint64, err error) (follow []*pendingAppend) {
	a.mu.Lock()
	l, ok := a.inFlight[token]
	if !ok {
		a.mu.Unlock()
		return nil
	}
	follow = a.takeAppend(l)
	tell := reportNothing
	switch {
	case errors.Is(err, mailbox.ErrFull):
		tell = a.turnedAway(l, err, time.Now())
	case errors.Is(err, mailbox.ErrClosed):
		a.noteGivenUp(time.Now())
	default:
		tell = a.noteMoving(err == nil)
	}
	a.mu.Unlock()
	tell()
	a.endAppend(l, place, err)
	return follow
}

// cancelAppend ends an append whose context has ended, in flight or queued.
func (a *appender) cancelAppend(l *pendingAppend) {
	err := fmt.Errorf("%w: %w", mailbox.ErrClosed, context.Cause(l.ctx))
	a.mu.Lock()
	if l.token != 0 {
		token := l.token
		a.mu.Unlock()
		a.sendAppends(a.endInFlight(token, 0, err)...)
		return
	}
	for i := a.head; i < len(a.queue); i++ {
		if a.queue[i] == l {
			a.queue = append(a.queue[:i], a.queue[i+1:]...)
			a.mu.Unlock()
			a.endAppend(l, 0, err)
			return
		}
	}
	a.mu.Unlock()
}

// sendOverdue sends the appends again that have waited long enough.
func (a *appender) sendOverdue() {
	a.mu.Lock()
	a.armed = false
	var late []*pendingAppend
	tell := reportNothing
	if now := time.Now(); !a.closed {
		late = a.due.removeDue(now)
		tell = a.noteWaited(late, now)
		for _, l := range late {
			l.wait = min(2*l.wait, retryAfterMax*a.retry)
			a.due.schedule(l, now.Add(l.wait))
		}
		a.armTimer()
	}
	a.mu.Unlock()
	tell()
	a.sendAppends(late...)
	if len(late) > 0 {
		a.logger.Warn("appends sent again", "count", len(late), "first", late[0].subject)
	}
}

// resendAll makes all appends in flight overdue: the connection was lost, and perhaps the
// acknowledgements with it.
func (a *appender) resendAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, l := range a.due.all() {
		l.wait = a.retry / 2 // the copy that goes now is the first on this connection
		a.due.schedule(l, now)
	}
	if !a.closed {
		a.armTimer()
	}
}

// handleAck handles one message to the inbox. Only the stream's acknowledgement of an append in
// flight counts; a late or repeated one ends nothing.
func (a *appender) handleAck(m *nats.Msg) {
	text := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	token, err := strconv.ParseUint(text, tokenBase, 64)
	if err != nil || strconv.FormatUint(token, tokenBase) != text {
		a.ignoreMessage(m, "no token")
		return
	}
	a.mu.Lock()
	l, flies := a.inFlight[token]
	sent := token <= a.token
	a.mu.Unlock()
	if !flies {
		if !sent {
			a.ignoreMessage(m, "no append has this token")
		}
		return // the answer to an earlier copy of the append
	}
	place, err := l.from.parseAck(m)
	switch {
	case errors.Is(err, errForeign):
		a.ignoreMessage(m, "not from the stream of the append")
	case errors.Is(err, errLater):
		a.mu.Lock()
		if l, ok := a.inFlight[token]; ok {
			l.said = err.Error()
			if !errors.Is(err, errBusy) { // sending more copies sooner would not help a busy server
				a.scheduleCopy(l, retryPause)
			}
		}
		a.mu.Unlock()
	default:
		a.sendAppends(a.endInFlight(token, place, err)...)
	}
}

// ignoreMessage counts a message that is not an acknowledgement, and logs only the 1st, 2nd, 4th, …:
// a sender of one such message can send many.
func (a *appender) ignoreMessage(m *nats.Msg, why string) {
	a.mu.Lock()
	a.ignored++
	count := a.ignored
	a.mu.Unlock()
	if count&(count-1) == 0 {
		a.logger.Warn("forged acknowledgement ignored", "why", why, "count", count, "bytes", len(m.Data))
	}
}
