package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lineFilter passes on the lines of a stream that are messages of JSON-RPC, and answers the others with an error: the
// protocol's library ends the connection at the first line that it cannot read.
type lineFilter struct {
	io.Closer
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of the line that is being passed on
}

func newLineFilter(in io.ReadCloser, out io.Writer) *lineFilter {
	return &lineFilter{Closer: in, in: bufio.NewReader(in), out: out}
}

// Read implements [io.Reader].
func (f *lineFilter) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		line, isLong, err := readLine(f.in)
		if code, text := lineError(line, isLong); code != 0 {
			if _, err := io.WriteString(f.out, errorAnswer(code, text)+"\n"); err != nil {
				return 0, err
			}
		} else if len(line) > 0 {
			f.rest = append(line, '\n')
		}
		if err != nil && len(f.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// readLine reads a line without the space around it. Of a line longer than the library reads it keeps nothing.
func readLine(in *bufio.Reader) (line []byte, isLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if isLong = isLong || len(line)+len(part) >= mcp.DefaultMaxLineLength; isLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return bytes.TrimSpace(line), isLong, err
		}
	}
}

// lineError returns the error that answers a line; code 0: the line is a message, a batch of them, or empty. Only clients
// of version 2025-03-26 of the protocol may send batches: for others the library ends the connection.
func lineError(line []byte, isLong bool) (code int, text string) {
	switch {
	case isLong:
		return jsonrpc.CodeInvalidRequest, fmt.Sprintf("invalid request: a line has at most %d bytes", mcp.DefaultMaxLineLength)
	case len(line) == 0:
		return 0, ""
	case !json.Valid(line):
		return jsonrpc.CodeParseError, "parse error: the line is not JSON"
	}
	if problem := MessageProblem(line); problem != "" {
		return jsonrpc.CodeInvalidRequest, "invalid request: " + problem
	}
	return 0, ""
}

// lockedWriter writes one message at a time.
type lockedWriter struct {
	io.WriteCloser
	mu sync.Mutex
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
