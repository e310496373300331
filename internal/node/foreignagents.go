package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/agentprotocol"
	"github.com/troupe-run/troupe/internal/toolset"
)

// foreignCall gives a task to an agent of another program: see toolset.Config.CallAgent.
type foreignCall func(ctx context.Context, c toolset.AgentCall) (string, error)

// a2aNames returns the agents of the protocol A2A that the node can call, as agent files name them.
func (c Config) a2aNames() (names []string) {
	for _, a := range c.A2AAgents {
		names = append(names, a2aclient.NamePrefix+a.Name)
	}
	return names
}

// agentCaller calls agents of other programs: those of the protocol A2A with web, the others over one connection with
// the rights of a client, which the first call makes: a connection that writes logs must not publish at subjects that
// others choose, nor one that answers requests.
func agentCaller(h *Node, web *a2aclient.Caller) foreignCall {
	var mu sync.Mutex
	var caller *agentprotocol.Caller
	connect := func() (*agentprotocol.Caller, error) {
		mu.Lock()
		defer mu.Unlock()
		if caller != nil {
			return caller, nil
		}
		nc, err := dialClient(h)
		if err != nil {
			return nil, fmt.Errorf("node: no connection for agents of other programs: %w", err)
		}
		caller, err = agentprotocol.NewCaller(nc, h.names)
		return caller, err
	}
	return func(ctx context.Context, c toolset.AgentCall) (string, error) {
		if a2aclient.IsName(c.Name) {
			text, err := web.Call(ctx, a2aclient.Request{Name: c.Name, Task: c.Task, Key: c.Key, Trace: c.Trace, Answers: c.Answers, Progress: c.Progress})
			var asked *a2aclient.Question
			if errors.As(err, &asked) {
				err = &toolset.AgentQuestion{ID: asked.ID, Text: asked.Text}
			}
			return text, err
		}
		bus, err := connect()
		if err != nil {
			return "", err
		}
		text, err := bus.Call(ctx, agentprotocol.CallRequest{Name: c.Name, Task: c.Task, Trace: c.Trace, Answers: c.Answers, Progress: c.Progress})
		var asked *agentprotocol.Question
		if errors.As(err, &asked) {
			err = &toolset.AgentQuestion{ID: asked.ID, Text: asked.Text}
		}
		return text, err
	}
}
