package mcpserver

import (
	"strings"
	"testing"
)

// Messages and batches that the protocol's library would serve without a limit, or answer under another id, are refused.
func TestMessagesThatAreRefused(t *testing.T) {
	call := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }
	batch := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(call("1")+",", n), ",") + "]" }
	for text, want := range map[string]string{
		call("1"):                             "",
		call(`"a"`):                           "",
		call("-9223372036854775808"):          "",
		`{"jsonrpc":"2.0","method":"notify"}`: "",
		batch(batchMax):                       "",
		batch(batchMax + 1):                   "at most 16 messages, and this one has 17",
		" " + batch(3000):                     "at most 16",
		"[]":                                  "not a JSON-RPC message",
		"3":                                   "not a JSON-RPC message",
		`{"a":1}`:                             "not a JSON-RPC message",
		call("1.5"):                           "the id",
		call("1e3"):                           "the id",
		call("99999999999999999999999"):       "the id",
		"[" + call("1") + "," + call("1.5") + "]": "the id",
	} {
		if got := MessageProblem([]byte(text)); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%.80s: %q, want %q", text, got, want)
		}
	}
}
