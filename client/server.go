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
	// JetStream is nil if JetStream is enabled for the account, or an error that wraps bus.ErrNoJetStream. On an
	// embedded server only the node may ask.
	JetStream error
}

// Server measures the round trip to the server, and reports its version and, if asked, whether it has JetStream.
func (c *Client) Server(ctx context.Context, askJetStream bool) (Server, error) {
	rtt, err := c.nc.RTT()
	if err != nil {
		return Server{}, fmt.Errorf("client: server: %w", err)
	}
	s := Server{Version: c.nc.ConnectedServerVersion(), RTT: rtt}
	if askJetStream {
		s.JetStream = bus.CheckJetStream(ctx, c.nc)
	}
	return s, nil
}
