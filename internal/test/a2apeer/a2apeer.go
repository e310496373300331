// Package a2apeer has agents of other programs for tests: servers of the protocol A2A that know HTTP and the bytes of
// the protocol, and nothing of troupe.
package a2apeer

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Request is one request that an agent has got.
type Request struct {
	Method string
	Params struct {
		ID      string
		Message struct {
			MessageID, Role, TaskID string
			Parts                   []struct{ Text string }
		}
	}
	Header http.Header `json:"-"`
}

// Task is the text of the task in a request.
func (r Request) Task() string {
	if len(r.Params.Message.Parts) == 0 {
		return ""
	}
	return r.Params.Message.Parts[0].Text
}

// Peer is a server with one agent.
type Peer struct {
	URL string
	// Card is its card, as text. A test may change it before the first call.
	Card string

	mu       sync.Mutex
	requests []Request
	cards    int
}

// Start starts an agent of version 1.0, which answers each request with answer.
func Start(t testing.TB, streams bool, answer func(w http.ResponseWriter, r Request)) *Peer {
	t.Helper()
	p, mux := &Peer{}, http.NewServeMux()
	mux.HandleFunc("GET /.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cards++
		_, _ = io.WriteString(w, p.Card) // a caller that is gone reads nothing
	})
	mux.HandleFunc("POST /rpc", func(w http.ResponseWriter, r *http.Request) {
		got := Request{Header: r.Header}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Errorf("the request is no JSON: %v", err)
			return
		}
		p.mu.Lock()
		p.requests = append(p.requests, got)
		p.mu.Unlock()
		answer(w, got)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p.URL = server.URL
	p.Card = CardOf(server.URL+"/rpc", streams)
	return p
}

// CardOf is the card of an agent at an address.
func CardOf(url string, streams bool) string {
	return fmt.Sprintf(`{"name":"reviewer","version":"1","capabilities":{"streaming":%v},"supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, streams, url)
}

// Requests returns the requests of a method so far.
func (p *Peer) Requests(method string) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.requests), func(r Request) bool { return r.Method != method })
}

// Tasks is how many requests with a task it has got.
func (p *Peer) Tasks() int {
	return len(p.Requests("SendMessage")) + len(p.Requests("SendStreamingMessage"))
}

// Cards is how often its card was read.
func (p *Peer) Cards() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cards
}

// Reply answers a request with a result.
func Reply(w http.ResponseWriter, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":%s}`, result) // a caller that is gone reads nothing
}

// Send sends events of a stream. It reports whether the caller is still there.
func Send(w http.ResponseWriter, results ...string) bool {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, r := range results {
		if _, err := fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%s}\n\n", r); err != nil {
			return false
		}
	}
	w.(http.Flusher).Flush()
	return true
}

// TaskText is a task in a state, as the result of GetTask; TaskEvent is the event with it.
func TaskText(id, state string) string {
	return fmt.Sprintf(`{"id":%q,"contextId":"c","status":{"state":"TASK_STATE_%s"}}`, id, state)
}

// TaskEvent is the event with a task in a state.
func TaskEvent(id, state string) string { return `{"task":` + TaskText(id, state) + `}` }

// StatusEvent is the event with a state of a task, and with words of the agent.
func StatusEvent(id, state, words string) string {
	return fmt.Sprintf(`{"statusUpdate":{"taskId":%q,"contextId":"c","status":{"state":"TASK_STATE_%s","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":%s}]}}}}`, id, state, quote(words))
}

// TextEvent is the event with the next piece of the text of an artifact.
func TextEvent(id, artifact, text string) string {
	return fmt.Sprintf(`{"artifactUpdate":{"taskId":%q,"contextId":"c","append":true,"artifact":{"artifactId":%q,"parts":[{"text":%s}]}}}`, id, artifact, quote(text))
}

// quote is a text in JSON.
func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprintf("a2apeer: a text has no JSON: %v", err)) // every text has
	}
	return string(raw)
}
