package client

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/bus"
)

// Server is the NATS server that a client is connected to.
type Server struct {
	Version string
	RTT     time.Duration
}

// Server asks how far the server is, and knows its version.
func (c *Client) Server() (Server, error) {
	rtt, err := c.nc.RTT()
	if err != nil {
		return Server{}, fmt.Errorf("client: server: %w", err)
	}
	return Server{Version: c.nc.ConnectedServerVersion(), RTT: rtt}, nil
}

// JetStream reports whether the account has it: nil, or an error that wraps
// bus.ErrNoJetStream. On an embedded server only the node may ask.
func (c *Client) JetStream(ctx context.Context) error { return bus.CheckJetStream(ctx, c.nc) }
