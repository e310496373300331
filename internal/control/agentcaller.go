package control

import (
	"context"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// agentKey is the key of whether the program of an agent has sent a request.
type agentKey struct{}

// errAgentDecides refuses a decision that an agent's program has sent with the credential of its user.
var errAgentDecides = &client.Error{Code: client.CodeForbidden, Text: bus.AgentRefused, Hint: "a person does it, in a terminal of their own"}

// refuseAgents refuses a decision of an agent's program.
func refuseAgents(ctx context.Context) error {
	if is, ok := ctx.Value(agentKey{}).(bool); ok && is {
		return errAgentDecides
	}
	return nil
}
