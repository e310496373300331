package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/strict"
)

// provider is a double of the Anthropic Messages API outside of the runtime.
// Package strict judges every request, and it answers from the
// number of assistant messages in it, so that it needs no memory of a run.
type provider struct {
	*httptest.Server
	turns int

	mu       sync.Mutex
	requests int
	bad      []string
}

// thinkTime is how long the double takes before it answers, so that a kill can
// meet a model call under way.
const thinkTime = 80 * time.Millisecond

func newProvider(turns int) *provider {
	p := &provider{turns: turns}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	return p
}

// wireRequest is what the answer depends on.
type wireRequest struct {
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role string `json:"role"`
	} `json:"messages"`
}

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req wireRequest
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err == nil {
		err = strict.Anthropic(body, nil) // the double signs nothing
	}
	p.mu.Lock()
	p.requests++
	if err != nil {
		p.bad = append(p.bad, err.Error())
	}
	p.mu.Unlock()
	if err != nil {
		http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":`+fmt.Sprintf("%q", err.Error())+`}}`, http.StatusBadRequest)
		return
	}
	time.Sleep(thinkTime)
	taken := 0
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			taken++
		}
	}
	child := strings.Contains(string(req.System), "agent: helper")
	p.answer(w, taken, child)
}

// answer streams the reply: the root counts, delegates once, counts on and
// ends; a helper counts twice and ends.
func (p *provider) answer(w http.ResponseWriter, taken int, child bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(event, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data) }
	say("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"double","content":[],"stop_reason":null,"usage":{"input_tokens":100,"output_tokens":1}}}`)
	turns, stop := p.turns, "tool_use"
	if child {
		turns = 2
	}
	tool := func(i int, name, args string) {
		say("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%d_%d","name":%q,"input":{}}}`, i, taken, i, name))
		say("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i, args))
		say("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	switch {
	case taken >= turns:
		stop = "end_turn"
		say("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		say("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"counted"}}`)
		say("content_block_stop", `{"type":"content_block_stop","index":0}`)
	case !child && taken == 1:
		tool(0, "delegate", `{"agent":"helper","task":"count too"}`)
		tool(1, "delegate", `{"agent":"helper","task":"count as well"}`)
	default:
		tool(0, "count", fmt.Sprintf(`{"n":%d}`, taken))
	}
	say("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":20}}`, stop))
	say("message_stop", `{"type":"message_stop"}`)
}
