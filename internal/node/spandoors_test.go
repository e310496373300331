package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
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
	setHeader := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(client.TraceHeader, value) }
	}
	start := map[string]func(header, field string) string{
		"runs": func(header, field string) string {
			id, text := body(field)
			w.expect(w.request("POST", "/api/v1/runs", text, setHeader(header)), http.StatusCreated, &client.RunAccepted{})
			return id
		},
		"chat": func(header, field string) string {
			var done httpapi.ChatCompletion
			text := fmt.Sprintf(`{"messages":[{"role":"user","content":"go"}],"troupe":{"trace":%q}}`, field)
			w.expect(w.request("POST", "/v1/chat/completions", text, setHeader(header)), http.StatusOK, &done)
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
