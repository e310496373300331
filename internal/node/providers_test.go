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
//behaviour:shows A15 A16
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

// TestAForkGoesOnWithAnotherProvider: a fork of a run of one provider goes on with a model of another. What the first one thought stays with it, the
// request is one that the other provider takes, and each turn is paid at the prices of its own model. A limit in money holds for the other model, too.
//
//behaviour:shows D6
func TestAForkGoesOnWithAnotherProvider(t *testing.T) {
	t.Parallel()
	d := &threeProviders{}
	s := httptest.NewServer(d)
	defer s.Close()
	env := map[string]string{"OPENAI_API_KEY": "sk-o", "OPENAI_BASE_URL": s.URL + "/v1", "OPENAI_API": "responses", "ANTHROPIC_API_KEY": "sk-a", "ANTHROPIC_BASE_URL": s.URL}
	agents := t.TempDir()
	writeText(t, "---\nname: clerk\ndescription: Probes.\nx-troupe:\n  tools: [{name: probe, description: Probes., command: 'echo the sky is blue', effect: read}]\n---\nProbe.\n", agents+"/clerk.md")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots, c.Env = []string{agents}, func(k string) string { return env[k] } })
	c := connectClient(t, h)
	first := beginRun(t, c, client.RunRequest{Agent: "clerk", Agents: agents, Model: "openai/gpt-6-sol", MaxTokens: 500_000,
		JSONSchema: json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}`)})
	before := *waitFinished(t, c, first, spec.ModelError).Result
	fork := client.RunRequest{RunID: client.NewID(), Fork: first + "@root:1", Agents: agents, Model: "anthropic/claude-sonnet-5-5"}
	a, err := c.Run(testContext(t), fork)
	if err != nil || a.Model != fork.Model || a.LimitUSD != 1 {
		t.Fatalf("%+v %v", a, err)
	}
	r := *waitFinished(t, c, fork.RunID, spec.Completed).Result
	checkWhole(t, c, fork.RunID)
	checkExactBudget(t, fork.RunID, r)
	to, known := h.routes.ChoiceOf(fork.Model)
	from, knownFrom := h.routes.ChoiceOf("openai/gpt-6-sol")
	if known != nil || knownFrom != nil {
		t.Fatal(known, knownFrom)
	}
	paid := from.Price.Cost(model.Usage{Input: 30, Output: 9, Reasoning: 4}).Nano + to.Price.Cost(model.Usage{Input: 40, Output: 7}).Nano
	if r.Text != `{"colour":"blue"}` || !r.CostKnown || int64(r.CostUSD*1e9+0.5) != paid || before.CostUSD >= r.CostUSD {
		t.Errorf("%q for %g, want %d billionths; the first turn has cost %g", r.Text, r.CostUSD, paid, before.CostUSD)
	}
	for why, q := range map[string]client.RunRequest{
		"is unknown, so the limit in money of the fork cannot be kept": {Model: "openai/nobody-knows", MaxBudgetUSD: 1},
		"nobody": {Model: "nobody/knows"},
		"script": {Model: "script//etc/passwd"},
	} {
		q.RunID, q.Fork, q.Agents = client.NewID(), fork.Fork, agents
		if _, err := c.Run(testContext(t), q); codeOf(err) == "" || codeOf(err) == client.CodeInternal || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", q.Model, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if want := []string{"openai", "openai", "anthropic"}; !slices.Equal(d.asked, want) {
		t.Errorf("asked %q", d.asked)
	}
	for _, err := range d.bad {
		t.Error(err)
	}
}
