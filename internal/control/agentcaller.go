package control

import (
	"context"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// agentKey is the context key that marks requests of an agent's program.
type agentKey struct{}

// errAgentDecides refuses a decision that an agent's program has sent with the credential of its user.
var errAgentDecides = &client.Error{Code: client.CodeForbidden, Text: bus.AgentRefused, Hint: "a person does it, in a terminal of their own"}

// refuseAgentProgram returns an error if an agent's program sent the request.
func refuseAgentProgram(ctx context.Context) error {
	if isAgent, ok := ctx.Value(agentKey{}).(bool); ok && isAgent {
		return errAgentDecides
	}
	return nil
}
