package node

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/httpapi"
)

// The header traceparent of HTTP and NATS requests starts a run in that trace; the field of the request takes precedence.
// A traceparent that breaks the rules of W3C counts as none, and nothing of it is recorded.
//
//behaviour:shows I3
func TestTraceparentOfARequest(t *testing.T) {
	t.Parallel()
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const whole = "00-" + trace + "-" + span + "-01"
	script := writeScript(t, `default: [{text: "done"}]`)
	h, w := startWeb(t, func(c *Config) { c.Model = script })
	c, asker := connectClient(t, h), connectRole(t, h, bus.RoleClient)
	subject, err := h.names.CommandSubject("run")
	if err != nil {
		t.Fatal(err)
	}
	body := func(field string) (id, text string) {
		id = client.NewID()
		return id, fmt.Sprintf(`{"run_id":%q,"prompt":"go","model":%q,"trace":%q}`, id, script, field)
	}
	start := map[string]func(header, field string) string{
		"runs": func(header, field string) string {
			id, text := body(field)
			w.expect(w.request("POST", "/api/v1/runs", text, traceHeader(header)), http.StatusCreated, &client.RunAccepted{})
			return id
		},
		"chat": func(header, field string) string {
			var done httpapi.ChatCompletion
			text := fmt.Sprintf(`{"messages":[{"role":"user","content":"go"}],"troupe":{"trace":%q}}`, field)
			w.expect(w.request("POST", "/v1/chat/completions", text, traceHeader(header)), http.StatusOK, &done)
			return done.Troupe.RunID
		},
		"nats": func(header, field string) string {
			id, text := body(field)
			reply, err := asker.RequestMsgWithContext(testContext(t), &nats.Msg{Subject: subject, Data: []byte(text), Header: nats.Header{client.TraceHeader: {header}}})
			if err != nil || reply.Header.Get("Nats-Service-Error") != "" || !json.Valid(reply.Data) {
				t.Fatalf("%v: %+v", err, reply)
			}
			return id
		},
	}
	addProtocolDoors(t, w, start)
	zeros := strings.Repeat("0", 32)
	for _, one := range []struct{ header, field, want string }{
		{header: whole, want: whole},
		{header: "00-" + strings.Repeat("1", 32) + "-" + span + "-01", field: whole, want: whole},
		{header: "01-" + trace + "-" + span + "-01-" + strings.Repeat("x", 1000), want: whole},
		{header: strings.ToUpper(whole)},
		{header: "00-" + zeros + "-" + span + "-01"},
		{header: "ff-" + trace + "-" + span + "-01"},
		{field: strings.Repeat("x", 100_000)},
	} {
		for door, open := range start {
			id := open(one.header, one.field)
			info, err := c.Describe(testContext(t), id)
			if err != nil || info.Description == nil {
				t.Fatalf("%s: %v", door, err)
			}
			if d := info.Description; d.Trace != one.want || len(d.TraceID) != 32 || (d.TraceID == trace) != (one.want != "") {
				t.Errorf("%s with %.100q, %.100q: trace %.100q, id %q", door, one.header, one.field, d.Trace, d.TraceID)
			}
		}
	}
}

// addProtocolDoors adds the entry points of A2A and MCP to those that begin a run with a header and a field.
func addProtocolDoors(t *testing.T, w webClient, start map[string]func(header, field string) string) {
	t.Helper()
	version := func(r *http.Request) { r.Header.Set("A2A-Version", "1.0") }
	message := func(field string) string {
		return fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"go"}]},"metadata":{"troupe":{"trace":%q}}}`, field)
	}
	start["a2a"] = func(header, field string) string {
		return w.askA2A("assistant", "SendMessage", message(field), traceHeader(header)).Result.Task.ID
	}
	start["a2a stream"] = func(header, field string) string {
		_, _, raw := w.send(w.request("POST", "/a2a/assistant", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":`+message(field)+`}`, version, traceHeader(header)))
		return firstMatch(t, raw, `"id":"([0-9a-z]{26})"`)
	}
	start["mcp"] = func(header, field string) string {
		text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"prompt":"go"},"_meta":{"traceparent":%q}}}`, field)
		accept := func(r *http.Request) {
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Content-Type", "application/json")
		}
		_, _, raw := w.send(w.request("POST", "/mcp", text, accept, traceHeader(header)))
		return firstMatch(t, raw, `"structuredContent":{"run_id":"([0-9a-z]{26})"`)
	}
}

// traceHeader sets the header of a request.
func traceHeader(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(client.TraceHeader, value) }
}

// firstMatch returns the first group of a pattern in a response.
func firstMatch(t *testing.T, raw []byte, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindSubmatch(raw)
	if found == nil {
		t.Fatalf("%s has no %s", raw, pattern)
	}
	return string(found[1])
}

// A call of an agent of another program carries the trace: over A2A and over NATS the run that the agent begins is a child of the call.
//
//behaviour:shows I3
func TestCallsOfForeignAgentsCarryTheTrace(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	receiver := newSpanReceiver(t)
	exported := func(c *Config) { c.Telemetry.Endpoint = receiver.URL }
	_, web := startWeb(t, exported, func(c *Config) { c.Model = writeScript(t, "agents:\n  assistant: [{text: it is safe}]\n") })
	dir := writeBoss(t, "a2a/reviewer, cc/derek/reviewer")
	caller := startBossNode(t, dir, exported, func(c *Config) {
		c.A2AAgents = []a2aclient.Agent{{Name: "reviewer", URL: web.url + "/a2a/assistant", TokenEnv: "REVIEWER"}}
		c.Env = func(name string) string { return map[string]string{"REVIEWER": web.token}[name] }
	})
	id, _ := askBoss(t, caller, client.RunRequest{Prompt: "a2a/reviewer", Agents: dir, Model: writeScript(t, bossScript)})
	receiver.expectForeignRun(t, id)
	p := startPeer(t, connectRole(t, caller, bus.RoleNode), "cc/derek/reviewer", func(p *foreignPeer, m *nats.Msg) {
		p.send(m, `{"type":"response","data":"done"}`, "")
	})
	id, c := askBoss(t, caller, client.RunRequest{Prompt: "cc/derek/reviewer", Agents: dir, Model: writeScript(t, bossScript)})
	info, err := c.Describe(testContext(t), id)
	if got := p.awaitPrompt().Header.Get(client.TraceHeader); err != nil || !strings.HasPrefix(got, "00-"+info.Description.TraceID+"-") {
		t.Errorf("the prompt has the trace %q: %v", got, err)
	}
	waitFinished(t, c, id, spec.Completed)
}

// expectForeignRun waits until a call of the run has the span of another run below it, and between them that of the
// message, all in the same trace.
func (r *spanReceiver) expectForeignRun(t *testing.T, run string) {
	t.Helper()
	waitUntil(t, "the run of the agent is a child of the call", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range r.spans {
			message := r.parentOf(s)
			if !isRunSpan(s) || message == nil || message.Name != "SendStreamingMessage" {
				continue
			}
			if call := r.parentOf(message); call != nil && call.Name == "execute_tool delegate" && attributeText(call.Attributes, "troupe.run") == run {
				return attributeText(s.Attributes, "troupe.run") != run
			}
		}
		return false
	})
}

// parentOf returns the span that is the parent of another; nil if it has not come. The caller holds mu.
func (r *spanReceiver) parentOf(s *receivedSpan) *receivedSpan {
	return r.spans[hex.EncodeToString(s.TraceId)+"/"+hex.EncodeToString(s.ParentSpanId)]
}
