package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// hostileTokens are names that would be several tokens of a subject, a wildcard, another
// command of the protocol, or a twin.
var hostileTokens = []string{"a.b", ".", "..", "a.", ".a", "*", "a*", ">", "a.>", " ", "a b", "a\tb", "a\r\nPUB troupe.box.x 0\r\n", "a\n", "a\x00b", "\x00", "UPPER", "ünicode", "ａ", "a/b", "../x",
	"$JS", "$KV", "a\u2028b", "\u202ea", "%2e", "a;b", "a'b", `a"b`, "a\\b", strings.Repeat("a", names.TokenBytesMax+1), strings.Repeat("a", 100_000)}

// TestAttackSubjectTokensAreRefused: each verb with each hostile name in each field that
// becomes a part of a subject is refused with an error of the client's, and nothing is
// written to a log, told as an event, or put into a bucket.
func TestAttackSubjectTokensAreRefused(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir())
	spy, err := h.embedded.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(spy.Close)
	asks, err := h.embedded.Connect(bus.RoleClient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asks.Close)
	for _, subject := range []string{"troupe.box.>", "troupe.evt.>", "$KV.troupe_runs.>", "$O.>"} {
		if _, err := spy.Subscribe(subject, func(m *nats.Msg) { t.Errorf("written to %.200q", m.Subject) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := spy.Flush(); err != nil {
		t.Fatal(err)
	}
	const known = "01k9z3abcdefghjkmnpqrstvwx"
	for verb, fields := range map[string][]string{
		"run": {"run_id"}, "get": {"run_id"}, "cancel": {"run_id", "agent"}, "steer": {"run_id", "agent"}, "answer": {"run_id", "agent"},
		"events": {"run_id"}, "policy": {"run_id"}, "budget": {"run_id"}, "transcript": {"run_id", "agent"},
		"export": {"run_id", "agent"}, "recall": {"run_id", "past"}, "attach": {"run_id"}, "delete": {"run_id"}, "logs": {"run_id", "log"}, "blob": {"run_id", "blob"},
	} {
		for _, field := range fields {
			for _, token := range hostileTokens {
				request := map[string]any{"run_id": known}
				request[field] = token
				data, err := json.Marshal(request)
				if err != nil {
					t.Fatal(err)
				}
				m, err := asks.RequestWithContext(testContext(t), "troupe.cmd."+verb, data)
				if err != nil {
					t.Fatalf("%s %s=%.40q: %v", verb, field, token, err)
				}
				code := m.Header.Get("Nats-Service-Error-Code")
				if !strings.HasPrefix(code, "4") || strings.ContainsAny(m.Header.Get("Nats-Service-Error"), "\r\n\x00") {
					t.Errorf("%s %s=%.40q: %q %.200q", verb, field, token, code, m.Header.Get("Nats-Service-Error"))
				}
			}
		}
	}
	if err := spy.Flush(); err != nil { // what was written has been heard
		t.Fatal(err)
	}
}
