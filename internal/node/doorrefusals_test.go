package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/httpapi"
)

// aliceToken and bobToken are the tokens of two owners.
const (
	aliceToken = "the-token-of-alice-0123456789"
	bobToken   = "the-token-of-bob-0123456789"
)

// httpDoor is a way to ask a node over HTTP. Its request is about a run of alice.
type httpDoor struct {
	name, method, path, body string
	header                   map[string]string
	// malformed is the body, or for a door without a body the header Last-Event-ID, that is none.
	malformed string
	// open says that the door needs no token: it shows nothing of the node.
	open bool
	// malformedSays and foreignSays are in the answers to a malformed request and to one of another owner, whose statuses
	// are malformedStatus and foreignStatus.
	malformedStatus, foreignStatus int
	malformedSays, foreignSays     string
}

func httpDoors(run string) []httpDoor {
	isJSON := map[string]string{"Content-Type": "application/json"}
	foreign := "does not belong to bob"
	return []httpDoor{
		{name: "REST", method: "POST", path: "/api/v1/runs/" + run + "/steer", body: `{"text":"stop"}`, header: isJSON, malformed: `{"text":`,
			malformedStatus: 400, malformedSays: "not a valid request", foreignStatus: 403, foreignSays: foreign},
		{name: "REST, reading", method: "GET", path: "/api/v1/runs/" + run + "/transcript", foreignStatus: 403, foreignSays: foreign},
		{name: "SSE", method: "GET", path: "/api/v1/runs/" + run + "/events", header: map[string]string{"Accept": "text/event-stream"}, malformed: "no cursor",
			malformedStatus: 400, malformedSays: "cursor", foreignStatus: 403, foreignSays: foreign},
		{name: "MCP", method: "POST", path: "/mcp", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cancel","arguments":{"run_id":"` + run + `"}}}`,
			header: map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}, malformed: `{"jsonrpc":`,
			malformedStatus: 400, malformedSays: "not a valid request", foreignStatus: 200, foreignSays: foreign},
		{name: "A2A", method: "POST", path: "/a2a/coordinator", body: `{"jsonrpc":"2.0","id":"1","method":"CancelTask","params":{"id":"` + run + `"}}`,
			header: map[string]string{"Content-Type": "application/json", "A2A-Version": "1.0"}, malformed: `{"jsonrpc":`,
			malformedStatus: 200, malformedSays: "-32700", foreignStatus: 200, foreignSays: foreign},
		{name: "OpenAI", method: "POST", path: "/v1/chat/completions", body: `{"model":"coordinator","messages":[{"role":"user","content":"x"}],"troupe":{"conversation":"notes"}}`,
			header: isJSON, malformed: `{"model":`, malformedStatus: 400, malformedSays: "not a valid request", foreignStatus: 403, foreignSays: foreign},
		{name: "page", method: "GET", path: "/", open: true},
	}
}

// doorRefusal is a request that a door refuses.
type doorRefusal struct {
	name   string
	edit   func(*http.Request)
	body   string // instead of that of the door
	status int
	says   string
}

// refusals are those of one door. Another owner is refused last: a session of the page of bob has the rights of bob.
func (d httpDoor) refusals(w webClient) []doorRefusal {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	list := []doorRefusal{
		{"a foreign host", func(r *http.Request) { r.Host = "evil.example.org" }, "", 421, "evil.example.org"},
		{"a foreign origin", header("Origin", "https://evil.example.org"), "", 403, "evil.example.org"},
	}
	large := `{"text":"` + strings.Repeat("x", 600<<10) + `"}`
	if d.method == "GET" {
		list = append(list, doorRefusal{"a body where there is none", nil, large, 400, "has no body"})
	} else {
		list = append(list, doorRefusal{"an oversized body", nil, large, 413, "the body "})
	}
	if d.open {
		return list
	}
	malformed := doorRefusal{"a malformed request", nil, d.malformed, d.malformedStatus, d.malformedSays}
	if d.method == "GET" {
		malformed.body, malformed.edit = "", header("Last-Event-ID", d.malformed)
	}
	if d.malformed != "" {
		list = append(list, malformed)
	}
	return append(list,
		doorRefusal{"no token", func(r *http.Request) { r.Header.Del("Authorization") }, "", 401, "no token"},
		doorRefusal{"another token", header("Authorization", "Bearer x"+w.token), "", 401, "no token"},
		doorRefusal{"the token as a password", header("Authorization", "Basic "+w.token), "", 401, "no token"},
		doorRefusal{"a token in the address", func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "token=" + w.token }, "", 401, "no token"},
		doorRefusal{"another owner", header("Authorization", "Bearer "+bobToken), "", d.foreignStatus, d.foreignSays})
}

// startOwnersWeb starts a node with the tokens of alice and bob, and a run of alice in her conversation "notes" that waits
// for an answer.
func startOwnersWeb(t testing.TB) (w, alice, bob webClient, run string) {
	t.Helper()
	_, w, alice, bob, run = startOwnersNode(t)
	return w, alice, bob, run
}

func startOwnersNode(t testing.TB, change ...func(*Config)) (h *Node, w, alice, bob webClient, run string) {
	t.Helper()
	h, w = startWeb(t, append(change, func(c *Config) {
		c.HTTP.Owners = []httpapi.Owner{{Name: "alice", Token: aliceToken}, {Name: "bob", Token: bobToken}}
		c.Model = writeScript(t, "default:\n  - calls: [{name: ask_human, args: {question: \"Which one?\"}}]\n  - text: done\n")
	})...)
	alice, bob, run = w, w, client.NewID()
	alice.token, bob.token = aliceToken, bobToken
	alice.post("/api/v1/runs", fmt.Sprintf(`{"run_id":%q,"prompt":"x","agent":"assistant","conversation":"notes"}`, run), http.StatusCreated, nil)
	alice.get("/api/v1/runs/"+run+"/result?wait=60s", http.StatusOK, nil)
	return h, w, alice, bob, run
}

// TestAttackEveryHTTPDoor: each way to ask a node over HTTP refuses a missing or wrong token, a foreign host or origin, what is
// too large or malformed, and the run of another owner, with a clear error, and nothing changes.
func TestAttackEveryHTTPDoor(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	w, alice, bob, run := startOwnersWeb(t)
	var before, after struct {
		State, Owner string
	}
	alice.get("/api/v1/runs/"+run, http.StatusOK, &before)
	for _, d := range httpDoors(run) {
		for _, c := range d.refusals(w) {
			body := d.body
			if c.body != "" {
				body = c.body
			}
			r := w.request(d.method, d.path, body)
			for name, value := range d.header {
				r.Header.Set(name, value)
			}
			if c.edit != nil {
				c.edit(r)
			}
			status, header, raw := w.send(r)
			if status != c.status || !strings.Contains(string(raw), c.says) {
				t.Errorf("%s, %s: %d %s; want %d with %q", d.name, c.name, status, raw, c.status, c.says)
			}
			var chat httpapi.ChatProblem
			if d.name == "OpenAI" && (json.Unmarshal(raw, &chat) != nil || chat.Error.Message == "" || chat.Error.Type == "") {
				t.Errorf("%s, %s: %s is no error in the form of OpenAI", d.name, c.name, raw)
			}
			if header.Get("Access-Control-Allow-Origin") != "" || bytes.Contains(raw, []byte(w.token)) {
				t.Errorf("%s, %s: %v %s", d.name, c.name, header, raw)
			}
		}
	}
	if alice.get("/api/v1/runs/"+run, http.StatusOK, &after); after != before || after.Owner != "alice" || after.State != "parked" {
		t.Errorf("the run was %+v, and is %+v", before, after)
	}
	var runs []client.RunInfo
	if bob.get("/api/v1/runs", http.StatusOK, &runs); len(runs) != 0 {
		t.Errorf("bob sees %+v", runs)
	}
	if w.get("/api/v1/runs", http.StatusOK, &runs); len(runs) != 1 {
		t.Errorf("the operator sees %+v", runs)
	}
}

// A page has the rights of the token that made its ticket, and what is about all owners is for operators.
func TestAttackPageOfAnotherOwner(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	w, _, bob, run := startOwnersWeb(t)
	var ticket httpapi.Ticket
	bob.post("/api/v1/tickets", `{}`, http.StatusCreated, &ticket)
	var session httpapi.PageSession
	w.expect(w.request("POST", "/api/v1/sessions", fmt.Sprintf(`{"ticket":%q}`, ticket.Ticket), func(r *http.Request) { r.Header.Del("Authorization") }), http.StatusCreated, &session)
	page := bob
	page.token = session.Session
	page.get("/api/v1/runs/"+run, http.StatusForbidden, nil)
	page.get("/api/v1/runs/"+run+"/events", http.StatusForbidden, nil)
	page.post("/api/v1/runs/"+run+"/answer", `{"query":"1-0.1","decision":"text","text":"x"}`, http.StatusForbidden, nil)
	page.get("/api/v1/nodes", http.StatusOK, nil)
	bob.get("/metrics", http.StatusForbidden, nil)
	w.get("/metrics", http.StatusOK, nil)
}
