package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// requester sends the requests of a client and retries them.
type requester struct {
	nc    *nats.Conn
	names names.Names
	turns requestTurns
	// noTexts says that the server lets this client read no events with texts: it reads them from a node.
	noTexts bool
}

const (
	// replyTimeout bounds one request unless ctx is shorter.
	replyTimeout = 15 * time.Second
	// askAgainAfter is the interval at which a request without an answer is sent again: the
	// node that received it may have died with it, or be frozen. Every request may arrive more
	// than once.
	askAgainAfter = 3 * time.Second
	// busyPatience is how long a request is retried while all nodes are busy, unless ctx is
	// shorter. The pause doubles from what the node names up to busyPauseMax, and is
	// randomized, so that clients that were refused together do not return together.
	busyPatience = time.Minute
	busyPauseMax = 4 * time.Second
)

// RetryHeader carries the number of milliseconds after which a busy node may be asked again.
const RetryHeader = "Troupe-Retry-After-Ms"

// TraceHeader is the W3C trace context of the program that starts a run, in headers of NATS and HTTP.
const TraceHeader = "traceparent"

// AskHeader names a request. A copy of it, with the same name and inbox, is dropped by a node that
// serves the request or has it in its queue.
const AskHeader = "Troupe-Ask"

// Busy reports whether an error says only that the nodes have too many requests at once: the
// same request may be sent again.
func Busy(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Retry > 0
}

func (q *requester) askNode(ctx context.Context, verb string, request, reply any) error {
	subject, err := q.names.CommandSubject(verb)
	if err != nil {
		return err
	}
	return q.askAt(ctx, subject, verb, request, reply)
}

// askAt retries a request while the nodes are busy, for busyPatience at most from its first turn.
func (q *requester) askAt(ctx context.Context, subject, verb string, request, reply any) error {
	until := time.Now().Add(busyPatience)
	sent := false
	begin := func() {
		if !sent {
			sent, until = true, time.Now().Add(busyPatience)
		}
	}
	for pause := time.Duration(0); ; pause = min(2*pause, busyPauseMax) {
		err := q.askOnce(ctx, subject, verb, request, reply, begin)
		if !Busy(err) {
			return err
		}
		var refused *Error
		errors.As(err, &refused)
		pause = min(max(pause, refused.Retry), busyPauseMax)
		wait := pause/2 + rand.N(pause)
		if time.Now().Add(wait).After(until) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// askOnce sends a request in its turn; begin is called when it has one.
func (q *requester) askOnce(ctx context.Context, subject, verb string, request, reply any, begin func()) error {
	data, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("client: %s: %w", verb, err)
	}
	done, err := q.turns.take(ctx, verb)
	if err != nil {
		return err
	}
	defer done()
	begin()
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	again := askAgainAfter
	if r, ok := request.(CancelRequest); ok { // the answer to a cancel may take that long
		again += r.Wait()
	}
	m, err := q.sendRequest(ctx, subject, data, again)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrConnectionClosed):
		err = fmt.Errorf("client: %s: %w: %w", verb, ErrUnavailable, err)
		q.turns.note(verb, err)
		return err
	case err != nil:
		return fmt.Errorf("client: %s: %w", verb, err)
	}
	q.turns.note(verb, nil)
	if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
		retry, _ := strconv.ParseUint(m.Header.Get(RetryHeader), 10, 31) // 0 without one
		return &Error{Code: code, Text: m.Header.Get("Nats-Service-Error"), Hint: m.Header.Get(HintHeader), Reason: m.Header.Get(ReasonHeader), Retry: time.Duration(retry) * time.Millisecond}
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, reply); err != nil {
		return fmt.Errorf("client: %s: the reply does not decode: %w", verb, err)
	}
	return nil
}

// sendRequest sends a request, again and again until a node answers. All copies name the same inbox
// and are marked as copies of one request, so the first answer counts, and a node that has the
// request already drops the others.
func (q *requester) sendRequest(ctx context.Context, subject string, data []byte, again time.Duration) (*nats.Msg, error) {
	inbox := q.nc.NewRespInbox()
	answers := make(chan *nats.Msg, answersAhead)
	sub, err := q.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, err
	}
	defer dropSubscription(sub)
	closed := q.nc.StatusChanged(nats.CLOSED)
	defer q.nc.RemoveStatusListener(closed)
	request := &nats.Msg{Subject: subject, Reply: inbox, Data: data, Header: nats.Header{AskHeader: {inbox[strings.LastIndexByte(inbox, '.')+1:]}}}
	resend := time.NewTicker(again)
	defer resend.Stop()
	for {
		if err := q.nc.PublishMsg(request); err != nil {
			return nil, err
		}
		select {
		case m := <-answers:
			if len(m.Data) == 0 && m.Header.Get("Status") == noResponders {
				return nil, nats.ErrNoResponders
			}
			return m, nil
		case <-resend.C:
		case <-closed:
			return nil, nats.ErrConnectionClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
		if q.isForbidden(subject) {
			return nil, &Error{Code: CodeForbidden, Text: "this connection may not ask on " + subject,
				Hint: "leave -s out as the user of the node, or name a client's --creds, --nkey or --user, and with --as the owner that it is"}
		}
		if err != nil {
			return nil, err
		}
	}
}

const (
	// answersAhead is how many answers to the copies of a request may arrive before the first is
	// read.
	answersAhead = 8
	// noResponders is the status of a server that knows no subscriber of the subject.
	noResponders = "503"
)

// isForbidden reports whether the server refused the subject: it reports that on the
// connection, not in the reply.
func (q *requester) isForbidden(subject string) bool {
	last := q.nc.LastError()
	return errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), strconv.Quote(subject))
}
