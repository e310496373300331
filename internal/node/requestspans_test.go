package node

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/troupe-run/troupe/internal/telemetry"
)

// A message of A2A and a call of a tool of MCP have a span of their own: a child of the caller's, and the parent of the
// run that they begin. Without a caller's trace they are in the trace of the run.
//
//behaviour:shows I3
func TestRequestsOfOtherProgramsHaveSpans(t *testing.T) {
	t.Parallel()
	const trace, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const whole = "00-" + trace + "-" + caller + "-01"
	r := newSpanReceiver(t)
	script := writeScript(t, `default: [{text: "done"}]`)
	_, w := startWeb(t, exportTo(r, telemetry.ContentNone), func(c *Config) { c.Model = script })
	start := map[string]func(header, field string) string{}
	addProtocolDoors(t, w, start)
	names := map[string]string{"a2a": "SendMessage", "a2a stream": "SendStreamingMessage", "mcp": "tools/call run"}
	for door, open := range start {
		for _, one := range []struct{ header, field, parent string }{
			{"", "", ""}, {whole, "", caller}, {"00-" + strings.Repeat("1", 32) + "-" + caller + "-01", whole, caller},
			{"broken", strings.Repeat("x", 100_000), ""},
		} {
			id := open(one.header, one.field)
			list := r.ofRun(t, id, func(list []*receivedSpan) bool { return serverSpan(list) != nil })
			request, want := serverSpan(list), trace
			if one.parent == "" {
				want = telemetry.TraceID(id, "")
			}
			if request.Name != names[door] || hex.EncodeToString(request.ParentSpanId) != one.parent || hex.EncodeToString(request.TraceId) != want {
				t.Errorf("%s %+.90v: %s in %x below %x", door, one, request.Name, request.TraceId, request.ParentSpanId)
			}
			if attributeText(request.Attributes, "error.type") != "" || request.EndTimeUnixNano < request.StartTimeUnixNano {
				t.Errorf("%s: %s", door, request.Span)
			}
			for _, s := range list {
				if isRunSpan(s) && (string(s.ParentSpanId) != string(request.SpanId) || string(s.TraceId) != string(request.TraceId)) {
					t.Errorf("%s %+.90v: the run is not below the request:\n%s", door, one, describeSpans(list))
				}
			}
		}
	}
}

func serverSpan(list []*receivedSpan) *receivedSpan {
	for _, s := range list {
		if s.Kind == tracepb.Span_SPAN_KIND_SERVER {
			return s
		}
	}
	return nil
}

// The span of a request that is refused has the code of its error, and a name that the caller made up is not in it. A
// caller that does not sample gets no span, and neither does its run.
//
//behaviour:shows I3
func TestSpansOfRefusedAndUnsampledRequests(t *testing.T) {
	t.Parallel()
	r := newSpanReceiver(t)
	_, w := startWeb(t, exportTo(r, telemetry.ContentNone), func(c *Config) { c.Model = writeScript(t, `default: [{text: "done"}]`) })
	start := map[string]func(header, field string) string{}
	addProtocolDoors(t, w, start)
	unsampled := "00-" + strings.Repeat("1", 32) + "-00f067aa0ba902b7-00"
	for _, open := range start {
		open(unsampled, unsampled)
	}
	w.askA2A("assistant", "SendMessage", `{"message":{"parts":[{"text":"zebra"}]}}`)
	call := func(name, arguments string) {
		accept := func(r *http.Request) {
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Content-Type", "application/json")
		}
		w.send(w.request("POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments), accept))
	}
	call("zebra", "{}")
	call("get", `{"run_id":"zebra"}`)
	want := map[string]string{"SendMessage": "-32602", "tools/call": "-32602", "tools/call get": "tool_error"}
	waitUntil(t, "the spans of refused requests", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.spans) >= len(want)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if got := attributeText(s.Attributes, "error.type"); got == "" || got != want[s.Name] || len(s.ParentSpanId) != 0 || strings.Contains(s.String(), "zebra") {
			t.Errorf("%s: error.type %q, want %q: %s", s.Name, got, want[s.Name], s.Span)
		}
	}
}
