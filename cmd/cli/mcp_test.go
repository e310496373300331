package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is an MCP server with two tools; its argument is the description of
// the second. It leaves a file that it was started.
func mcpServer() {
	if err := os.WriteFile("started", nil, 0o600); err != nil {
		os.Exit(1)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "tester", Version: "7"}, nil)
	yes := true
	for name, description := range map[string]string{"read": "reads", "pay": os.Args[1]} {
		s.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes, ReadOnlyHint: name == "read"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done: " + name}}}, nil
			})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}
