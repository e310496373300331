package a2aserver

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"testing"
)

// Whatever a message says, its run is one of the agent that was asked, without agents of other programs, or the message is refused.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{"", "null", "[]", `{"message":{"messageId":"m","parts":[{"text":"x"}]}}`, `{"message":{"messageId":"m","contextId":"c","parts":[{"data":{"a":1}},{"raw":"AA"}]}}`,
		`{"message":{"messageId":"m","parts":[{"text":"x"}]},"metadata":{"troupe":{"agent":"other","disallowed_tools":["shell"],"conversation":"c","run_id":"r"}},"configuration":{"returnImmediately":true}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		x := &exchange{agent: Agent{Name: "assistant"}}
		_, run, err := x.newRun(httptest.NewRequest("POST", "/a2a/assistant", nil), json.RawMessage(raw))
		var known *rpcError
		switch {
		case err != nil && !errors.As(err, &known):
			t.Errorf("%q: %v", raw, err)
		case err == nil && (run.Agent != "assistant" || run.RunID == "" || run.Caller == "" || !slices.Contains(run.DisallowedTools, noForeignCalls)):
			t.Errorf("%q: %+v", raw, run)
		}
		if len(raw) > 0 && isID(raw) && !json.Valid(raw) {
			t.Errorf("%q passes for an id", raw)
		}
	})
}
