// Package toolname has the names that several packages must agree on: of tools of the loop, and the prefixes of tools of MCP
// servers and of agents that are called by A2A. Everything here is pure.
package toolname

// Tools of the loop that other packages know by name.
const (
	Delegate = "delegate"
	Handoff  = "handoff"
	AskHuman = "ask_human"
)

// Prefixes of names.
const (
	MCPPrefix = "mcp__" // of a tool: mcp__SERVER__TOOL
	A2APrefix = "a2a/"  // of an agent: a2a/NAME
)
