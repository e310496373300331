package node

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/test/conformance"
	"github.com/troupe-run/troupe/model"
)

// threeProviders is three providers at one address, which check their requests: OpenAI thinks, asks
// for a tool and then refuses the key, Gemini refuses, Anthropic answers.
type threeProviders struct {
	mu    sync.Mutex
	asked []string
	bad   []error
}

func (d *threeProviders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	d.mu.Lock()
	defer d.mu.Unlock()
	signed := func(text string) string { return strings.TrimPrefix(text, "thought by ") }
	said := ""
	switch {
	case err != nil:
	case strings.HasSuffix(r.URL.Path, "/responses"):
		said, err = "openai", conformance.Responses(body, signed)
		if len(d.asked) == 0 {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"thought by gpt-6-sol"}}

data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","name":"probe","arguments":"{}","status":"completed"}}

data: {"type":"response.completed","response":{"usage":{"input_tokens":30,"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4}}}}

`)
		} else {
			if !strings.Contains(string(body), "thought by gpt-6-sol") {
				err = fmt.Errorf("what it thought did not come back: %s", body)
			}
			w.WriteHeader(http.StatusUnauthorized)
		}
	case strings.Contains(r.URL.Path, "gemini-3.8-flash"):
		said, err = "gemini", conformance.Gemini(body, "gemini-3.8-flash", signed)
		w.WriteHeader(http.StatusForbidden)
	default:
		said, err = "anthropic", conformance.Anthropic(body, signed)
		if err == nil && !strings.Contains(string(body), `"json_schema"`) {
			err = fmt.Errorf("no schema of the answer: %s", body)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `event: message_start
data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":40}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"{\"colour\":\"blue\"}"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}

event: message_stop
data: {"type":"message_stop"}

`)
	}
	if d.asked = append(d.asked, said); err != nil {
		d.bad = append(d.bad, fmt.Errorf("%s: %w", said, err))
	}
}

// TestARunGoesThroughThreeProviders: what one thought goes to no other, each
// request is one that its provider takes, and each lease is one of them (A15, A16).
//
//behaviour:shows A15
func TestARunGoesThroughThreeProviders(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	d := &threeProviders{}
	s := httptest.NewServer(d)
	defer s.Close()
	env := map[string]string{"OPENAI_API_KEY": "sk-o", "OPENAI_BASE_URL": s.URL + "/v1", "OPENAI_API": "responses", "GEMINI_API_KEY": "g",
		"GOOGLE_GEMINI_BASE_URL": s.URL, "ANTHROPIC_API_KEY": "sk-a", "ANTHROPIC_BASE_URL": s.URL}
	dir := t.TempDir()
	writeText(t, "---\nname: clerk\ndescription: Probes.\nx-troupe:\n  tools: [{name: probe, description: Probes., command: 'echo the sky is blue', effect: read}]\n---\nProbe.\n", dir+"/agents/clerk.md")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots, c.Env = []string{dir}, func(k string) string { return env[k] } })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Agent: "clerk", Agents: dir + "/agents", Dir: dir, Model: "openai/gpt-6-sol",
		Fallback:   []string{"gemini/gemini-3.8-flash", "anthropic/claude-sonnet-5-5"},
		JSONSchema: json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}`)})
	info := waitFinished(t, c, id, spec.Completed)
	if info.Result.Text != `{"colour":"blue"}` {
		t.Errorf("the answer is %q", info.Result.Text)
	}
	leases, thought := 0, int64(0)
	err := c.Events(testContext(t), id, nil, false, func(e client.Event, _ []byte) error {
		var d struct{ Usage model.Usage }
		switch e.Kind {
		case event.KindModelStarted:
			leases++
		case event.KindModelFinished:
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return err
			}
			thought += d.Usage.Reasoning
		}
		return nil
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if want := []string{"openai", "openai", "gemini", "anthropic"}; err != nil || !slices.Equal(d.asked, want) || leases != len(want) {
		t.Errorf("asked %q for %d leases, %v", d.asked, leases, err)
	}
	if thought != 4 {
		t.Errorf("%d tokens were thought", thought)
	}
	for _, err := range d.bad {
		t.Error(err)
	}
}
