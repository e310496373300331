package telemetry

import (
	"crypto/rand"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Names of attributes of requests, of the semantic conventions.
const (
	AttributeConversation = keyConversation
	AttributeOperation    = keyOperation
	AttributeTool         = keyToolName
	AttributeMCPMethod    = keyMCPMethod
	AttributeTransport    = "network.transport"
	AttributeA2AMethod    = "a2a.method.name"
	AttributeA2AVersion   = "a2a.protocol.version"
	AttributeA2AMessage   = "a2a.message.id"
	AttributeA2ATask      = "a2a.task.id"
	AttributeA2AState     = "a2a.task.state"
	AttributeRPCStatus    = "rpc.response.status_code"
)

// Request is the span of a request that another program makes to this node, from its arrival to the end of its
// response. One goroutine uses it. The methods of nil do nothing: spans are not exported.
type Request struct {
	queue   *spanQueue
	sampler sampler
	trace   traceContext
	span    span
}

// BeginRequest begins the span of a request. name has few values: no text of the caller. traceparent is the span of the
// caller, in the form of W3C; it may be empty or wrong.
func (x *Exporter) BeginRequest(name, traceparent string) *Request {
	if x == nil {
		return nil
	}
	r := &Request{queue: x.queue, sampler: x.target.sampler, span: span{name: name, kind: tracepb.Span_SPAN_KIND_SERVER, startMS: time.Now().UnixMilli()}}
	rand.Read(r.span.id[:]) // never fails: crypto/rand ends the process instead
	if c, ok := parseTraceparent(traceparent); ok {
		r.trace = c
	} else {
		r.trace.sampled = true
		rand.Read(r.trace.id[:])
	}
	return r
}

// Set adds an attribute.
func (r *Request) Set(key, value string) {
	if r != nil && value != "" {
		r.span.set(key, value)
	}
}

// BeginRun returns the traceparent of the run that the request begins: the span of the request, in the trace of the
// caller or of the run. traceparent is the span of the caller, as in BeginRequest. Without spans the run is a
// child of the caller.
func (r *Request) BeginRun(run, traceparent string) string {
	if r == nil {
		return traceparent
	}
	r.Set(keyRun, run)
	r.trace = traceOf(run, traceparent)
	if !r.sampler.isSampled(r.trace) {
		return traceparent
	}
	sampled := r.trace
	sampled.sampled = true
	return sampled.traceparent(r.span.id)
}

// End ends the span. kind is the type of its error; "" if there was none.
func (r *Request) End(kind string) {
	if r == nil || !r.sampler.isSampled(r.trace) {
		return
	}
	r.span.endMS = time.Now().UnixMilli()
	r.span.setError(kind, "")
	r.span.trace = &r.trace
	r.queue.add(r.span)
}
