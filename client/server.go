package client

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/internal/bus"
)

// Server is the NATS server that a client is connected to.
type Server struct {
	Version string
	RTT     time.Duration
}

// Server measures the round trip to the server and reports its version.
func (c *Client) Server() (Server, error) {
	rtt, err := c.nc.RTT()
	if err != nil {
		return Server{}, fmt.Errorf("client: server: %w", err)
	}
	return Server{Version: c.nc.ConnectedServerVersion(), RTT: rtt}, nil
}

// JetStream returns nil if JetStream is enabled for the account, or an error that wraps
// bus.ErrNoJetStream. On an embedded server only the node may ask.
func (c *Client) JetStream(ctx context.Context) error { return bus.CheckJetStream(ctx, c.nc) }
