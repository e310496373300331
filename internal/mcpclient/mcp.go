// Package mcpclient gives agents the tools of MCP servers: programs that speak over
// their stdin and stdout, and web addresses.
//
// A server is third-party code. It is started only from a file that the
// operator wrote or has allowed; it gets an environment of its own; the hub pins
// the description of a tool when it is first allowed, and turns a tool whose
// description changes later off until it is allowed again; a server's claims about
// itself never make a tool more trusted; and its failures end in an error result.
package mcpclient

import (
	"errors"
	"time"
)

// Limits of servers and of what they say.
const (
	ConnectTimeout      = 25 * time.Second // to start, greet and list
	StableAfter         = 30 * time.Second // a server that lived so long is started again at once
	BackoffMin          = time.Second
	BackoffMax          = time.Minute
	IdleMax             = 10 * time.Minute // without a call; then a server is stopped until the next
	ServersMax          = 32               // of one run
	ToolsMax            = 128              // of one server
	SchemaBytesMax      = 16 << 10         // of one tool
	SpecBytesMax        = 96 << 10         // of all tools of a run: they are in its first entry
	DescriptionBytesMax = 1000             // what a model reads; all of it is pinned
	MessageBytesMax     = 16 << 20         // of one message of a server
	ResourcesMax        = 200              // named in one list
	FileBytesMax        = 1 << 20          // of a file of servers
	DefinitionsMax      = 128              // in one file
	ServerNameMax       = 32
	ToolNameMax         = 64
	TimeoutMax          = 10 * time.Minute // that a file may give a server's calls
	PagesMax            = 64               // of one list
)

// Errors.
var (
	ErrConfig   = errors.New("mcp: bad definition of a server")
	ErrVariable = errors.New("mcp: a variable is not set")
	ErrStart    = errors.New("mcp: the server did not start")
	ErrDown     = errors.New("mcp: the server is down")
	ErrDied     = errors.New("mcp: the server ended during the call")
	ErrChanged  = errors.New("mcp: the tool is not the one that was allowed")
	ErrAddress  = errors.New("mcp: the address is not allowed")
	ErrLock     = errors.New("mcp: the file of allowed servers cannot be used")
	ErrClosed   = errors.New("mcp: closed")
)
