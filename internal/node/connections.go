package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// ErrConnectionClosed says that a connection of the node is closed for good. The client library connects again for
// ever, but not after an error that it takes for its own fault: a line that is too long, or credentials that the
// server does not accept any more.
var ErrConnectionClosed = errors.New("node: the NATS server has closed a connection of the node for good")

// closedConns notices that a connection of the node is closed for good.
type closedConns struct {
	mu      sync.Mutex
	closing bool // the node itself closes them
	err     error
	since   time.Time
}

// startClosing says that connections are closed by the node from now on.
func (c *closedConns) startClosing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
}

// add records that a connection is closed; first: it is the first one, and the node did not close it.
func (c *closedConns) add(nc *nats.Conn) (first bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || c.err != nil {
		return false, c.err
	}
	c.err, c.since = ErrConnectionClosed, time.Now()
	if why := nc.LastError(); why != nil {
		c.err = fmt.Errorf("%w: %w", ErrConnectionClosed, why)
	}
	return true, c.err
}

// lost returns the error of the first connection that is closed for good, and since when it is; nil: there is none.
func (c *closedConns) lost() (since time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.err
}

// closedHandler is the option of each connection that the node cannot work without. Nothing opens it again: streams,
// buckets and subscriptions belong to it. So the node has to end.
func closedHandler(n *Node) nats.Option {
	return nats.ClosedHandler(func(nc *nats.Conn) {
		first, err := n.closed.add(nc)
		if !first {
			return
		}
		n.cfg.Logger.Error("a connection of the node is closed for good: the node can do nothing more, and has to be started again", "error", err)
		n.cancelStart()
		if n.cfg.OnConnectionLost != nil {
			n.cfg.OnConnectionLost(err)
		}
	})
}

// check returns ErrConnectionClosed once the node can do nothing more.
func (c *closedConns) check() error {
	_, err := c.lost()
	return err
}

// logHealth says that no entry can be stored, once a connection is closed for good.
func (c *closedConns) logHealth() *client.LogHealth {
	since, err := c.lost()
	if err == nil {
		return nil
	}
	return &client.LogHealth{Why: err.Error(), Since: since.UTC().Format(time.RFC3339Nano), Remedy: "start the node again"}
}

func (n *Node) newClient(options ...nats.Option) (*client.Client, error) {
	nc, err := dialClient(n, options...)
	if err != nil {
		return nil, err
	}
	return client.New(nc, n.names), nil
}

// dialClient makes a connection with the rights of a client, which ends when the node closes.
func dialClient(h *Node, options ...nats.Option) (*nats.Conn, error) {
	connect := func() (*nats.Conn, error) { return h.embedded.Connect(bus.RoleClient, options...) }
	if h.embedded == nil {
		o := h.cfg.Bus
		o.Extra = append(slices.Clone(o.Extra), options...)
		o.InboxPrefix = cmp.Or(o.InboxPrefix, bus.NodeClientInbox)
		connect = func() (*nats.Conn, error) { return bus.Connect(o) }
	}
	nc, err := connect()
	if err != nil {
		return nil, err
	}
	h.localMu.Lock()
	defer h.localMu.Unlock()
	h.localConns = append(h.localConns, nc)
	return nc, nil
}
