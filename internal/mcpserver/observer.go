package mcpserver

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/internal/telemetry"
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

// spanKey is the key of the span of a call in its context.
type spanKey struct{}

// requestSpan is the span of a call; nil without one.
func requestSpan(ctx context.Context) *telemetry.Request {
	span, _ := ctx.Value(spanKey{}).(*telemetry.Request)
	return span
}

// Values of error.type of a call.
const (
	errorTool    = "tool_error" // the tool has answered with an error
	errorUnknown = "_OTHER"
)

// traceCalls is the middleware that makes a span of each call of a tool. The name of a tool that the server does not have
// is left out: the client has made it up.
func (c Config) traceCalls(tools toolNames) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			call, ok := r.(*mcp.CallToolRequest)
			if !ok || c.Spans == nil {
				return next(ctx, method, r)
			}
			name := method
			if tools[call.Params.Name] {
				name += " " + call.Params.Name
			}
			span := c.Spans.BeginRequest(name, traceOf(call))
			span.Set(telemetry.AttributeMCPMethod, method)
			span.Set(telemetry.AttributeOperation, "execute_tool")
			span.Set(telemetry.AttributeTransport, "tcp")
			if tools[call.Params.Name] {
				span.Set(telemetry.AttributeTool, call.Params.Name)
			}
			result, err := next(context.WithValue(ctx, spanKey{}, span), method, r)
			span.End(errorType(span, result, err))
			return result, err
		}
	}
}

// errorType returns the error.type of a call, and notes the code of an error of the protocol.
func errorType(span *telemetry.Request, result mcp.Result, err error) string {
	var refused *jsonrpc.Error
	called, ok := result.(*mcp.CallToolResult)
	switch {
	case errors.As(err, &refused):
		code := strconv.FormatInt(refused.Code, 10)
		span.Set(telemetry.AttributeRPCStatus, code)
		return code
	case err != nil:
		return errorUnknown
	case ok && called != nil && called.IsError:
		return errorTool
	}
	return ""
}
