package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// Client is a connection to the nodes that serve it.
type Client struct {
	*requester
}

// New makes a client. The caller keeps the connection.
func New(nc *nats.Conn, names names.Names) *Client { return &Client{&requester{nc: nc, names: names}} }

// NewID makes an id for a run or a request: a lower-case ULID.
func NewID() string { return strings.ToLower(ulid.Make().String()) }

// HintHeader carries the remedy of a refusal.
const HintHeader = "Troupe-Hint"

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
	return i, err
}

// Describe returns one run with its Description.
func (c *Client) Describe(ctx context.Context, run string) (RunInfo, error) {
	var i RunInfo
	err := c.askNode(ctx, "get", GetRequest{RunID: run, Describe: true}, &i)
	return i, err
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

// Policy replaces the policy of a live run. The same request may be sent again.
func (c *Client) Policy(ctx context.Context, r PolicyRequest) error {
	r.Request = orNew(r.Request)
	return c.askNode(ctx, "policy", r, nil)
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
	w, err := c.NewRunWatch(run)
	if err != nil {
		return RunInfo{}, err
	}
	defer w.Close()
	return w.Wait(ctx)
}

// RunWatch waits for the end of a run. It may be made before the run, and then misses none of its
// events.
type RunWatch struct {
	client  *Client
	run     string
	changed <-chan struct{}
	stop    func()
}

// NewRunWatch watches a run, which need not exist yet. The caller must Close it.
func (c *Client) NewRunWatch(run string) (*RunWatch, error) {
	changed, stop, err := watchChanges(c, run)
	if err != nil {
		return nil, fmt.Errorf("client: wait: %w", err)
	}
	return &RunWatch{c, run, changed, stop}, nil
}

// Close ends the watch.
func (w *RunWatch) Close() { w.stop() }

// Wait is Client.Wait.
func (w *RunWatch) Wait(ctx context.Context) (RunInfo, error) { return w.wait(ctx, false) }

// WaitNew is Wait for a run that a node has accepted after the watch began, and that did not exist
// before: it need not ask for its state at once.
func (w *RunWatch) WaitNew(ctx context.Context) (RunInfo, error) { return w.wait(ctx, true) }

func (w *RunWatch) wait(ctx context.Context, heard bool) (info RunInfo, err error) {
	c, told := w.client, false
	if heard {
		told, err = w.pause(ctx, 0)
	}
	for quiet := 0; err == nil; quiet = min(quiet+1, quietMax) {
		info, err = getEnded(ctx, c, w.run, told)
		busy := (Busy(err) || heard && (Lost(err) || isUnstored(err))) && !c.nc.IsClosed() && ctx.Err() == nil
		if !busy && (err != nil || !info.isLive()) {
			return info, err
		}
		heard = true
		told, err = w.pause(ctx, quiet)
	}
	return info, err
}

// pause waits for a change of the run, or until it is time to ask; told says that the run has changed.
func (w *RunWatch) pause(ctx context.Context, quiet int) (told bool, err error) {
	look := time.NewTimer(min(pollPause<<quiet, pollPauseMax))
	defer look.Stop()
	select {
	case <-w.changed:
		told = true
	case <-look.C:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return told, fmt.Errorf("client: wait: %w", ctx.Err())
	}
	return told, nil
}

// isLive reports whether the run goes on without a person. An interrupted run does as soon as a node
// takes it up, or ends after the patience of the nodes for its pool.
func (i RunInfo) isLive() bool {
	return i.State == RunLive || i.State == RunQueued || i.State == RunInterrupted
}

// getEnded returns the state of a run, with its result once it is finished or parked. If an event
// has told so, getEnded asks for the result at once, which is in the log before it is in the row.
func getEnded(ctx context.Context, c *Client, run string, told bool) (RunInfo, error) {
	if !told {
		if info, err := c.State(ctx, run); err != nil || info.isLive() {
			return info, err
		}
	}
	return c.Get(ctx, run)
}

// watchChanges signals that the run has changed: see names.RunChanges. That it began or queues ends
// no wait.
func watchChanges(c *Client, run string) (changed <-chan struct{}, stop func(), err error) {
	subject, err := c.names.RunChanges(run)
	if err != nil {
		return nil, nil, err
	}
	// SubscribeSync is not used: its channel takes 512 KiB, ten times what the run does.
	signal := make(chan struct{}, 1)
	sub, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
		if strings.HasSuffix(m.Subject, "."+event.KindRunStarted) || strings.HasSuffix(m.Subject, "."+event.KindRunQueued) {
			return
		}
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
func isUnstored(err error) bool { return isRefusedWith(err, CodeLogs) }

func isRefusedWith(err error, code string) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == code
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

// DrainRequest asks all nodes of a name to hand off the shards that they hold and acquire no
// more, or, with Undo, to be ordinary nodes again.
type DrainRequest struct {
	Node string `json:"node"`
	Undo bool   `json:"undo,omitempty"`
}
