package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/supervisor"
)

// Client is a connection to the nodes that serve it.
type Client struct {
	nc    *nats.Conn
	names names.Names
	turns requestTurns
}

// New makes a client. The caller keeps the connection.
func New(nc *nats.Conn, names names.Names) *Client { return &Client{nc: nc, names: names} }

// NewID makes an id for a run or a request: a lower-case ULID.
func NewID() string { return strings.ToLower(ulid.Make().String()) }

// HintHeader carries the remedy of a refusal.
const HintHeader = "Troupe-Hint"

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

// AskHeader names a request. A copy of it, with the same name and inbox, is dropped by a node that
// serves the request or has it in its queue.
const AskHeader = "Troupe-Ask"

// Busy reports whether an error says only that the nodes have too many requests at once: the
// same request may be sent again.
func Busy(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Retry > 0
}

func (c *Client) askNode(ctx context.Context, verb string, request, reply any) error {
	subject, err := c.names.CommandSubject(verb)
	if err != nil {
		return err
	}
	return c.askAt(ctx, subject, verb, request, reply)
}

// askAt retries a request while the nodes are busy, for busyPatience at most.
func (c *Client) askAt(ctx context.Context, subject, verb string, request, reply any) error {
	until := time.Now().Add(busyPatience)
	for pause := time.Duration(0); ; pause = min(2*pause, busyPauseMax) {
		err := c.askOnce(ctx, subject, verb, request, reply)
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

func (c *Client) askOnce(ctx context.Context, subject, verb string, request, reply any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("client: %s: %w", verb, err)
	}
	done, err := c.turns.take(ctx, verb)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	again := askAgainAfter
	if r, ok := request.(CancelRequest); ok { // the answer to a cancel may take that long
		again += r.Wait()
	}
	m, err := c.sendRequest(ctx, subject, data, again)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("client: %s: %w: %w", verb, ErrUnavailable, err)
	case err != nil:
		return fmt.Errorf("client: %s: %w", verb, err)
	}
	if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
		retry, _ := strconv.ParseUint(m.Header.Get(RetryHeader), 10, 31) // 0 without one
		return &Error{Code: code, Text: m.Header.Get("Nats-Service-Error"), Hint: m.Header.Get(HintHeader), Retry: time.Duration(retry) * time.Millisecond}
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
func (c *Client) sendRequest(ctx context.Context, subject string, data []byte, again time.Duration) (*nats.Msg, error) {
	inbox := c.nc.NewRespInbox()
	answers := make(chan *nats.Msg, answersAhead)
	sub, err := c.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, err
	}
	defer dropSubscription(sub)
	closed := c.nc.StatusChanged(nats.CLOSED)
	defer c.nc.RemoveStatusListener(closed)
	request := &nats.Msg{Subject: subject, Reply: inbox, Data: data, Header: nats.Header{AskHeader: {inbox[strings.LastIndexByte(inbox, '.')+1:]}}}
	resend := time.NewTicker(again)
	defer resend.Stop()
	for {
		if err := c.nc.PublishMsg(request); err != nil {
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
		if c.isForbidden(subject) {
			return nil, &Error{Code: CodeForbidden, Text: "this connection may not ask on " + subject,
				Hint: "leave -s out as the user of the node, or name a client's --creds, --nkey or --user"}
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
func (c *Client) isForbidden(subject string) bool {
	last := c.nc.LastError()
	return errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), strconv.Quote(subject))
}

// Run starts a run, or finds the one that the same request started before. A run that names a
// directory goes to the nodes of this machine, if there are any.
func (c *Client) Run(ctx context.Context, r RunRequest) (RunAccepted, error) {
	if r.Dir != "" || r.Agents != "" {
		machine, _ := os.Hostname() // empty without one
		a, err := c.RunOn(ctx, machine, r)
		if !errors.Is(err, nats.ErrNoResponders) {
			return a, err
		}
	}
	var a RunAccepted
	err := c.askNode(ctx, "run", r, &a)
	return a, err
}

// RunOn is Run on the nodes of one machine: the one that has the directories.
func (c *Client) RunOn(ctx context.Context, machine string, r RunRequest) (RunAccepted, error) {
	var a RunAccepted
	subject, err := c.names.MachineCommand("run", machine)
	if err == nil {
		err = c.askAt(ctx, subject, "run", r, &a)
	}
	return a, err
}

// Get returns the current state of a run.
func (c *Client) Get(ctx context.Context, run string) (RunInfo, error) {
	var i RunInfo
	err := c.askNode(ctx, "get", GetRequest{RunID: run}, &i)
	return i, err
}

// State returns the current state of a run, without its result: a node answers it from its index,
// however long the logs of the run are.
func (c *Client) State(ctx context.Context, run string) (RunInfo, error) {
	var i RunInfo
	err := c.askNode(ctx, "get", GetRequest{RunID: run, Brief: true}, &i)
	if refused := (*Error)(nil); errors.As(err, &refused) && refused.Code == CodeBad { // a node of an earlier release
		return c.Get(ctx, run)
	}
	return i, err
}

// Describe returns one run with its Description.
func (c *Client) Describe(ctx context.Context, run string) (RunInfo, error) {
	var i RunInfo
	err := c.askNode(ctx, "get", GetRequest{RunID: run, Describe: true}, &i)
	return i, err
}

// List returns the known runs, newest first.
func (c *Client) List(ctx context.Context) ([]RunInfo, error) {
	var l []RunInfo
	err := c.askNode(ctx, "list", struct{}{}, &l)
	return l, err
}

// Nodes lists the live nodes.
func (c *Client) Nodes(ctx context.Context) ([]NodeInfo, error) {
	var l []NodeInfo
	err := c.askNode(ctx, "nodes", struct{}{}, &l)
	return l, err
}

// Drain asks the nodes of a name to drain, or to stop draining, and returns those that are
// there.
func (c *Client) Drain(ctx context.Context, r DrainRequest) ([]NodeInfo, error) {
	var l []NodeInfo
	err := c.askNode(ctx, "drain", r, &l)
	return l, err
}

// Cancel asks a run to stop. It returns once the request is in the log, and its agents have
// stopped or the wait has timed out: the reply says which agents have stopped.
func (c *Client) Cancel(ctx context.Context, r CancelRequest) (CancelReply, error) {
	r.Request = orNew(r.Request)
	wait := r.Wait()
	var asked, waited CancelReply
	// The first request does not wait: a frozen node must not delay the append to the log for
	// as long as another node might have waited for the agents.
	r.WaitMS = -1
	if err := c.askNode(ctx, "cancel", r, &asked); err != nil || wait == 0 || len(asked.Pending) == 0 {
		return asked, err
	}
	r.WaitMS = wait.Milliseconds()
	if err := c.askNode(ctx, "cancel", r, &waited); err != nil {
		return asked, nil // the log holds the cancel in any case
	}
	return waited, nil
}

// Steer sends a user's message to a running agent.
func (c *Client) Steer(ctx context.Context, r SteerRequest) error {
	r.Request = orNew(r.Request)
	return c.askNode(ctx, "steer", r, nil)
}

// Answer decides an open query.
func (c *Client) Answer(ctx context.Context, r AnswerRequest) error {
	r.Request = orNew(r.Request)
	return c.askNode(ctx, "answer", r, nil)
}

// SetPolicy replaces the policy of a live run.
func (c *Client) SetPolicy(ctx context.Context, run string, p supervisor.Policy) error {
	return c.askNode(ctx, "policy", PolicyRequest{RunID: run, Request: NewID(), Policy: p}, nil)
}

// SetLimits replaces the limits of a live run.
func (c *Client) SetLimits(ctx context.Context, run string, l spec.RunLimits) error {
	return c.askNode(ctx, "budget", BudgetRequest{RunID: run, Request: NewID(), Limits: l}, nil)
}

// Budget changes or freezes the limits of a live run.
func (c *Client) Budget(ctx context.Context, r BudgetRequest) error {
	r.Request = orNew(r.Request)
	return c.askNode(ctx, "budget", r, nil)
}

func orNew(id string) string {
	if id == "" {
		return NewID()
	}
	return id
}

// Wait returns the run once it is finished or parked for a person. Nodes publish both; now and
// then Wait asks for the row of the run, because an event may be lost. Once a node has answered,
// Wait tolerates moments in which none does: another node may be taking over.
func (c *Client) Wait(ctx context.Context, run string) (RunInfo, error) {
	changed, stop, err := c.watchChanges(run)
	if err != nil {
		return RunInfo{}, fmt.Errorf("client: wait: %w", err)
	}
	defer stop()
	heard, told := false, false
	for quiet := 0; ; quiet = min(quiet+1, quietMax) {
		info, err := c.getEnded(ctx, run, told)
		busy := (Busy(err) || heard && (Lost(err) || isUnstored(err))) && !c.nc.IsClosed() && ctx.Err() == nil
		if !busy && (err != nil || !info.isLive()) {
			return info, err
		}
		heard, told = true, false
		look := time.NewTimer(min(pollPause<<quiet, pollPauseMax))
		select {
		case <-changed:
			told = true
		case <-look.C:
		case <-ctx.Done():
			err = fmt.Errorf("client: wait: %w", ctx.Err())
		}
		look.Stop()
		if ctx.Err() != nil {
			return info, err
		}
	}
}

// isLive reports whether the run goes on without a person.
func (i RunInfo) isLive() bool { return i.State == "live" || i.State == "queued" }

// getEnded returns the state of a run, with its result once it is finished or parked. If an event
// has told so, getEnded asks for the result at once, which is in the log before it is in the row.
func (c *Client) getEnded(ctx context.Context, run string, told bool) (RunInfo, error) {
	if !told {
		if info, err := c.State(ctx, run); err != nil || info.isLive() {
			return info, err
		}
	}
	return c.Get(ctx, run)
}

// watchChanges signals that the run has changed: see names.RunChanges.
func (c *Client) watchChanges(run string) (changed <-chan struct{}, stop func(), err error) {
	subject, err := c.names.RunChanges(run)
	if err != nil {
		return nil, nil, err
	}
	// SubscribeSync is not used: its channel takes 512 KiB, ten times what the run does.
	signal := make(chan struct{}, 1)
	sub, err := c.nc.Subscribe(subject, func(*nats.Msg) {
		select {
		case signal <- struct{}{}:
		default: // a change is already signaled
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return signal, func() { dropSubscription(sub) }, nil
}

// isUnstored reports whether the server of the node's logs does not answer now. A run that
// exists continues when it does.
func isUnstored(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == CodeJournal
}

// pollPause is how long Wait and Events rely on events alone: they may be lost. As long as no
// event arrives, each pause is longer than the one before.
const (
	pollPause    = 2 * time.Second
	pollPauseMax = 30 * time.Second
	quietMax     = 4 // doublings of pollPause
)

func dropSubscription(sub *nats.Subscription) {
	// If the connection is already closed, its subscriptions are gone, too.
	_ = sub.Unsubscribe()
}
