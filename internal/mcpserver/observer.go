package mcpserver

import (
	"context"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// verbTools are the tools that are no agents.
var verbTools = []string{"list_runs", "run", "get", "cancel", "answer"}

// observer is the middleware that reports each request to Observe. It reports no name of a tool that the client has made
// up.
func (c Config) observer(agents []Agent) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			began, name := time.Now(), ""
			if call, ok := r.(*mcp.CallToolRequest); ok {
				isAgent := slices.ContainsFunc(agents, func(a Agent) bool { return agentToolPrefix+a.Name == call.Params.Name })
				if isAgent || slices.Contains(verbTools, call.Params.Name) {
					name = call.Params.Name
				}
			}
			result, err := next(ctx, method, r)
			called, ok := result.(*mcp.CallToolResult)
			c.Observe(method, name, time.Since(began), err != nil || ok && called.IsError)
			return result, err
		}
	}
}
