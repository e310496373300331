package node

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/agentprotocol"
)

// foreignCall gives a task to an agent of another program: see toolset.Config.CallAgent.
type foreignCall func(ctx context.Context, name, task string) (string, error)

// agentCaller calls agents of other programs over one connection with the rights of a client, which the first call makes: a
// connection that writes logs must not publish at subjects that others choose, nor one that answers requests.
func agentCaller(h *Node) foreignCall {
	var mu sync.Mutex
	var conn *nats.Conn
	connect := func() (*nats.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if conn != nil {
			return conn, nil
		}
		nc, err := dialClient(h)
		if err != nil {
			return nil, fmt.Errorf("node: no connection for agents of other programs: %w", err)
		}
		conn = nc
		return conn, nil
	}
	return func(ctx context.Context, name, task string) (string, error) {
		nc, err := connect()
		if err != nil {
			return "", err
		}
		return agentprotocol.CallAgent(ctx, nc, name, task)
	}
}
