package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/test/conformance"
)

// provider is a double of the Anthropic Messages API outside of the runtime.
// Package conformance judges every request, and the double answers from the
// number of assistant messages in it, so that it needs no memory of a run.
type provider struct {
	*httptest.Server
	turns int

	mu       sync.Mutex
	requests int
	bad      []string
	of       map[string]int       // requests by the run that their first message names
	last     map[string]time.Time // when the last of them came
	held     heldRequests
	begun    []treeCall // model calls of trees
	slow     time.Duration
}

// thinkTime is how long the double takes before it answers, so that a kill can hit a model call
// under way.
const thinkTime = 80 * time.Millisecond

// setDelay makes the double take that much longer.
func (p *provider) setDelay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = d
}

func (p *provider) thinkTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return thinkTime + p.slow
}

func newProvider(turns int) *provider {
	p := &provider{turns: turns, of: map[string]int{}, last: map[string]time.Time{}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serveHTTP))
	return p
}

// wireRequest holds the parts of a request that determine the answer.
type wireRequest struct {
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role string `json:"role"`
	} `json:"messages"`
}

func (p *provider) serveHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req wireRequest
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err == nil {
		err = conformance.Anthropic(body, nil) // the double signs nothing
	}
	p.mu.Lock()
	p.requests++
	run := p.runOf(body)
	p.of[run]++
	p.last[run] = time.Now()
	if err != nil {
		p.bad = append(p.bad, fmt.Sprintf("%s %.80q of %s, %d bytes: %v", r.Method, r.URL.Path, r.UserAgent(), len(body), err))
	}
	p.mu.Unlock()
	if err != nil {
		http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":`+fmt.Sprintf("%q", err.Error())+`}}`, http.StatusBadRequest)
		return
	}
	if p.answerTree(w, body, run, nodeOf(r)) {
		return
	}
	time.Sleep(p.thinkTime())
	p.waitHeld(r)
	taken := 0
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			taken++
		}
	}
	if p.spawnMore(w, body, taken, run) || p.delegateAll(w, body, taken, run) {
		return
	}
	child := strings.Contains(string(req.System), "You are helper.")
	p.streamAnswer(w, taken, child, run)
}

// What a request costs by the usage that is sent with its answer.
const inputTokens, outputTokens = 100, 20

// tag is how a prompt names its run, so that requests can be counted by run.
const tag = "the-run-"

var tagged = regexp.MustCompile(tag + "[0-9a-z]+")

func (p *provider) runOf(body []byte) string {
	return strings.TrimPrefix(string(tagged.Find(body)), tag)
}

// countOf returns how many requests named a run.
func (p *provider) countOf(run string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[run]
}

// helperTurns are the turns in which a helper counts.
const helperTurns = 2

// streamAnswer streams the reply: the root counts, delegates once, counts on and
// ends; a helper counts twice and ends.
func (p *provider) streamAnswer(w http.ResponseWriter, taken int, child bool, run string) {
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(event, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data) }
	say("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"double","content":[],"stop_reason":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, inputTokens))
	turns, stop := p.turns, "tool_use"
	if child {
		turns = helperTurns
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
		tool(0, "delegate", fmt.Sprintf(`{"agent":"helper","task":"count too for %s%s"}`, tag, run))
		tool(1, "delegate", fmt.Sprintf(`{"agent":"helper","task":"count as well for %s%s"}`, tag, run))
	default:
		tool(0, "count", fmt.Sprintf(`{"n":%d}`, taken))
	}
	say("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, stop, outputTokens))
	say("message_stop", `{"type":"message_stop"}`)
}

// streamCall streams a reply that calls one tool, or none and ends.
func (p *provider) streamCall(w http.ResponseWriter, taken int, name, args string) {
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(event, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data) }
	say("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"double","content":[],"stop_reason":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, inputTokens))
	stop := "end_turn"
	if name == "" {
		say("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		say("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"done"}}`)
	} else {
		stop = "tool_use"
		say("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_%d","name":%q,"input":{}}}`, taken, name))
		say("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%q}}`, args))
	}
	say("content_block_stop", `{"type":"content_block_stop","index":0}`)
	say("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, stop, outputTokens))
	say("message_stop", `{"type":"message_stop"}`)
}

// streamDelegation streams a reply that delegates tasks and does nothing else.
func (p *provider) streamDelegation(w http.ResponseWriter, tasks []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(event, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data) }
	say("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"double","content":[],"stop_reason":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, inputTokens))
	for i, task := range tasks {
		say("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%d","name":"delegate","input":{}}}`, i, i))
		say("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i, task))
		say("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	say("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":%d}}`, outputTokens))
	say("message_stop", `{"type":"message_stop"}`)
}
