package client

import (
	"context"

	"github.com/troupe-run/troupe/agent/spec"
)

// ContextRequest changes the system prompt and the tools of an agent of a live run, from the agent's next request on.
// Without a change it asks for them.
type ContextRequest struct {
	RunID   string `json:"run_id"`
	Request string `json:"request_id,omitempty"`
	// Agent is the agent's id; "": the one that has the conversation of the run.
	Agent string `json:"agent,omitempty"`
	// Layers are set, each in place of the agent's own layer of its name. One without text is removed.
	Layers      []spec.Layer `json:"layers,omitempty"`
	AddTools    []string     `json:"add_tools,omitempty"`
	RemoveTools []string     `json:"remove_tools,omitempty"`
	By          string       `json:"by,omitempty"` // the name of the user, for the audit log
}

// Changes reports whether the request changes anything.
func (r ContextRequest) Changes() bool {
	return len(r.Layers) > 0 || len(r.AddTools) > 0 || len(r.RemoveTools) > 0
}

// AgentContext is the context of an agent's next request apart from its messages: the system prompt and the tools.
type AgentContext struct {
	Agent spec.ID `json:"agent"`
	Name  string  `json:"name"`
	// Layers make the system prompt, in their order.
	Layers []spec.Layer `json:"layers"`
	Tools  []string     `json:"tools"`
	// Waiting: a change waits for the request after the one under way. It is included.
	Waiting bool `json:"waiting,omitempty"`
}

// Context returns the system prompt and the tools of an agent.
func Context(ctx context.Context, c *Client, run, agent string) (a AgentContext, err error) {
	err = c.askNode(ctx, "context", ContextRequest{RunID: run, Agent: agent}, &a)
	return a, err
}

// SetContext changes the system prompt and the tools of an agent of a live run. The same request may be sent again.
func SetContext(ctx context.Context, c *Client, r ContextRequest) error {
	r.Request = orNew(r.Request)
	return c.askNode(ctx, "context", r, nil)
}
