package control

import (
	"context"

	"github.com/troupe-run/troupe/client"
)

// agentKey is the key of whether the program of an agent has sent a request.
type agentKey struct{}

// errAgentDecides refuses a decision that an agent's program has sent with the credential of its user.
var errAgentDecides = &client.Error{Code: client.CodeForbidden, Text: "an agent cannot answer questions or change what agents may do: a tool, a hook or an MCP server of a run has sent this",
	Hint: "a person does it, in a terminal of their own"}

// refuseAgents refuses a decision of an agent's program.
func refuseAgents(ctx context.Context) error {
	if is, ok := ctx.Value(agentKey{}).(bool); ok && is {
		return errAgentDecides
	}
	return nil
}
