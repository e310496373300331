package node

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/test/conformance"
)

// manyCallsProvider is an Anthropic server whose first reply makes a given number of tool calls, and
// that refuses what a strict provider would refuse.
type manyCallsProvider struct {
	calls, bytes int

	mu      sync.Mutex
	bodies  [][]byte
	refused error
}

func (f *manyCallsProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		err = conformance.Anthropic(body, func(string) string { return "" })
	}
	if err != nil {
		f.refused = err
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.bodies = append(f.bodies, body)
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind, data string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, data) }
	event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":10,"output_tokens":1}}`)
	stop := "end_turn"
	if len(f.bodies) == 1 {
		stop = "tool_use"
		args, _ := json.Marshal(`{"path":"."` + strings.Repeat(" ", f.bytes) + `}`)
		for i := range f.calls {
			event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":{"type":"tool_use","id":"t%d","name":"list_dir","input":{}}`, i, i))
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i, args))
			event("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
		}
	} else {
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
		event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"done"}`)
		event("content_block_stop", `,"index":0`)
	}
	event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q},"usage":{"output_tokens":5}`, stop))
	event("message_stop", "")
}

// A reply with more calls than may run does not end a run: the first 64 run, each of the
// others that the entry holds is answered "not run", and the model learns about those that
// it does not hold. A strict provider accepts the next request.
//
//behaviour:shows A14
func TestAttackAReplyWithTooManyCallsDoesNotEndTheRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for _, c := range []struct {
		calls, bytes  int
		ran, answered int
		note          string
	}{
		{128, 1, 64, 128, ""},
		{1000, 1, 64, 128, "At least 872 more tool calls"},
		{10_000, 1, 64, 128, "At least 896 more tool calls"},
		{6, 100_000, 2, 2, "4 more tool calls"},
		{1, 300_000, 0, 1, ""},
	} {
		f := &manyCallsProvider{calls: c.calls, bytes: c.bytes}
		server := httptest.NewServer(f)
		dir := t.TempDir()
		h := startNode(t, t.TempDir(), func(cfg *Config) {
			cfg.Roots = []string{dir}
			cfg.Env = func(name string) string {
				return map[string]string{"ANTHROPIC_BASE_URL": server.URL, "ANTHROPIC_API_KEY": "key"}[name]
			}
		})
		cl := connectClient(t, h)
		a, err := cl.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "Look.", Dir: dir, Model: "anthropic/m", MaxTokens: 100_000_000,
			AllowUnpriced: []string{"anthropic/m"}, LoopOptions: &spec.LoopOptions{Watch: spec.Watch{Of: spec.Off}, Breaker: spec.Breaker{Failures: spec.Off}}})
		if err != nil {
			t.Fatal(err)
		}
		info, err := cl.Wait(testContext(t), a.RunID)
		if err != nil {
			t.Fatal(err)
		}
		server.Close()
		f.mu.Lock()
		if info.Result == nil || info.Result.Reason != spec.Completed || f.refused != nil || len(f.bodies) != 2 {
			t.Fatalf("%d calls of %d bytes: %+v, %d requests, %v", c.calls, c.bytes, info.Result, len(f.bodies), f.refused)
		}
		sent := string(f.bodies[1])
		answered, notRun := strings.Count(sent, `"tool_result"`), strings.Count(sent, "not run: the limit of tool calls is reached")
		if answered != c.answered || info.Result.Agents[0].Calls != c.ran || c.ran > 2 && answered-notRun != c.ran || !strings.Contains(sent, c.note) {
			t.Errorf("%d calls of %d bytes: %d answered, %d not run, %d ran, note %v", c.calls, c.bytes, answered, notRun,
				info.Result.Agents[0].Calls, strings.Contains(sent, "more tool calls"))
		}
		f.mu.Unlock()
	}
}
