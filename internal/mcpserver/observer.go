package mcpserver

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolNames are the tools of a server.
type toolNames map[string]bool

// addTool adds a tool to a server and to the names of its tools.
func addTool[In, Out any](s *mcp.Server, names toolNames, t *mcp.Tool, call mcp.ToolHandlerFor[In, Out]) {
	names[t.Name] = true
	mcp.AddTool(s, t, call)
}

// observer is the middleware that reports each request to Observe. A name that no tool of the server has is left out: the
// client has made it up.
func (c Config) observer(tools toolNames) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			began, name := time.Now(), ""
			if call, ok := r.(*mcp.CallToolRequest); ok && tools[call.Params.Name] {
				name = call.Params.Name
			}
			result, err := next(ctx, method, r)
			called, ok := result.(*mcp.CallToolResult)
			c.Observe(method, name, time.Since(began), err != nil || ok && called.IsError)
			return result, err
		}
	}
}
