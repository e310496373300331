package node

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// A stream keeps the positions of its cursor as long as it lives: a cursor that names far more agents than the run has is
// refused, also while another stream follows the run.
func TestAttackCursorOfAgentsThatAreNotThere(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	forged := func(n int) string {
		p := client.Positions{}
		for i := range n {
			p.Advance(client.Event{Published: event.Published{ID: fmt.Sprintf("%s.x%d#1.0", id, i), Seq: 1}})
		}
		return p.Text(id)
	}
	stream := func(cursor string) (int, string) {
		t.Helper()
		r, err := w.http.Do(w.request("GET", "/api/v1/runs/"+id+"/events", "", func(r *http.Request) {
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Last-Event-ID", cursor)
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text := make([]byte, 512)
		n, _ := r.Body.Read(text)
		return r.StatusCode, string(text[:n])
	}
	if code, text := stream(""); code != http.StatusOK {
		t.Errorf("a plain stream: %d %s", code, text)
	}
	for _, n := range []int{3000, 15_000} {
		if code, text := stream(forged(n)); code != http.StatusBadRequest || !strings.Contains(text, "cursor") {
			t.Errorf("a cursor of %d agents: %d %s", n, code, text)
		}
	}
	openGate(t, gate)
	waitFinished(t, c, id, "completed")
}

// A batch takes one place among the calls that a client may have under way, so its size has a limit.
func TestAttackBatchOfCalls(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, w := startWeb(t)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_runs","arguments":{}}}`
	batch := "[" + strings.TrimSuffix(strings.Repeat(call+",", 1000), ",") + "]"
	code, _, text := w.send(w.request("POST", "/mcp", batch, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("MCP-Protocol-Version", "2025-03-26")
	}))
	if code != http.StatusBadRequest || !strings.Contains(string(text), "at most 16 messages") {
		t.Errorf("%d %.200s", code, text)
	}
}
