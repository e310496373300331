package a2aserver

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/telemetry"
)

// traceMessage answers a message within a span of its own. The run of the message is a child of that span.
func (x *exchange) traceMessage(r *http.Request, q rpcRequest) (err error) {
	x.span = x.cfg.Spans.BeginRequest(q.Method, r.Header.Get(client.TraceHeader))
	x.span.Set(telemetry.AttributeA2AMethod, q.Method)
	x.span.Set(telemetry.AttributeA2AVersion, protocolVersion)
	defer func() { x.span.End(x.errorType(cmp.Or(err, x.streamed))) }()
	if q.Method == methodStream {
		return x.sendStreaming(r, q.Params)
	}
	return x.send(r, q.Params)
}

// errorType returns the error.type of the message: the code of the error with which it was answered, which it also
// notes.
func (x *exchange) errorType(err error) string {
	if err == nil {
		return ""
	}
	code := strconv.Itoa(explain(err).Code)
	x.span.Set(telemetry.AttributeRPCStatus, code)
	return code
}

// traceRun makes the run of a message the child of the message's span.
func (x *exchange) traceRun(message string, run *client.RunRequest) {
	x.span.Set(telemetry.AttributeA2AMessage, message)
	x.span.Set(telemetry.AttributeA2ATask, run.RunID)
	x.span.Set(telemetry.AttributeConversation, conversationOf(*run))
	run.Trace = x.span.BeginRun(run.RunID, run.Trace)
}

// traceState notes the state of the task as the client got it last.
func (x *exchange) traceState(state string) { x.span.Set(telemetry.AttributeA2AState, state) }
