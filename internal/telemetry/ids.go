package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/internal/toolname"
)

// traceID and spanID are the ids of OpenTelemetry.
type (
	traceID [16]byte
	spanID  [8]byte
)

// traceContext is the trace of a run.
type traceContext struct {
	id      traceID
	parent  spanID // of the program that started the run; zero without one
	sampled bool   // as that program has decided; true without one
}

// traceOf returns the trace of a run: that of the W3C traceparent with which it was started, or one that its id
// decides. A traceparent that breaks the rules of W3C counts as none, as those rules demand.
func traceOf(run, traceparent string) traceContext {
	if c, ok := parseTraceparent(traceparent); ok {
		return c
	}
	c := traceContext{sampled: true}
	sum := sha256.Sum256([]byte("troupe trace\x00" + run))
	copy(c.id[:], sum[:])
	return c
}

// TraceID returns the trace id of a run, in hexadecimal.
func TraceID(run, traceparent string) string {
	id := traceOf(run, traceparent).id
	return hex.EncodeToString(id[:])
}

// CleanTraceparent returns a traceparent in the form of version 00; "" for one that breaks the rules of W3C.
func CleanTraceparent(text string) string {
	c, ok := parseTraceparent(text)
	if !ok {
		return ""
	}
	return c.traceparent(c.parent)
}

// Sizes of the fields of a traceparent.
const (
	versionSize, traceSize, parentSize, flagsSize = 2, 32, 16, 2
	traceparentSize                               = versionSize + traceSize + parentSize + flagsSize + 3
	sampledFlag                                   = 1
)

func parseTraceparent(text string) (c traceContext, ok bool) {
	text = strings.TrimSpace(text)
	fields := strings.SplitN(text, "-", 5) // a fifth one is of a later version
	if len(text) < traceparentSize || len(fields) < 4 || strings.ToLower(text) != text {
		return c, false
	}
	version, flags := make([]byte, 1), make([]byte, 1)
	for i, into := range [][]byte{version, c.id[:], c.parent[:], flags} {
		if len(fields[i]) != 2*len(into) {
			return c, false
		}
		if _, err := hex.Decode(into, []byte(fields[i])); err != nil {
			return c, false
		}
	}
	c.sampled = flags[0]&sampledFlag != 0
	known := version[0] == 0 && len(fields) == 4 || version[0] > 0 && version[0] < 0xff
	return c, known && c.id != traceID{} && c.parent != spanID{}
}

// traceparent returns the W3C form of a span of the trace.
func (c traceContext) traceparent(span spanID) string {
	flags := "00"
	if c.sampled {
		flags = "01"
	}
	return "00-" + hex.EncodeToString(c.id[:]) + "-" + hex.EncodeToString(span[:]) + "-" + flags
}

// newSpanID derives the id of a span from what it is about. So all nodes give one thing the same id.
func newSpanID(parts ...string) (id spanID) {
	sum := sha256.Sum256([]byte("troupe span\x00" + strings.Join(parts, "\x00")))
	if copy(id[:], sum[:]); id == (spanID{}) {
		id[0] = 1 // zero is no id
	}
	return id
}

func runSpanID(run string) spanID { return newSpanID("run", run) }

func agentSpanID(run, agent string) spanID { return newSpanID("agent", run, agent) }

func chatSpanID(run, agent string, reservation int) spanID {
	return newSpanID("chat", run, agent, strconv.Itoa(reservation))
}

func toolSpanID(run, agent, call string) spanID { return newSpanID("tool", run, agent, call) }

// delegationSpanID is the id of the call that starts a child: the child knows it without the call.
func delegationSpanID(run, child string) spanID { return newSpanID("delegation", run, child) }

func mcpSpanID(run, agent, call string, attempt int) spanID {
	return newSpanID("mcp", run, agent, call, strconv.Itoa(attempt))
}

// otherTool replaces the name of a tool that a model made up and that no tool can have: it may be any text.
const otherTool = "_OTHER"

// toolNameMax is the most bytes of a tool's name that model providers accept.
const toolNameMax = 128

// checkedToolName returns the name of a tool, or otherTool.
func checkedToolName(name string) string {
	isForbidden := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r))
	}
	if name == "" || len(name) > toolNameMax || strings.ContainsFunc(name, isForbidden) {
		return otherTool
	}
	return name
}

// mcpPrefix begins the names of the tools of MCP servers: mcp__SERVER__TOOL.
const mcpPrefix = toolname.MCPPrefix

// mcpTool splits the name of a tool of an MCP server.
func mcpTool(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, mcpPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "__")
}
