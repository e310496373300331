package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// fuzzPatience is how long a fuzzed request may take: streams and requests that wait do not end by themselves.
const fuzzPatience = 2 * time.Second

// fuzzedNode is a node with a run of alice. Bob, another owner, sends whatever the fuzzer makes to one of its doors.
type fuzzedNode struct {
	bob    webClient
	nc     *nats.Conn
	alice  webClient
	run    string
	before map[string]string // what alice can read of her run, by path
}

func startFuzzed(f *testing.F) *fuzzedNode {
	h, _, alice, bob, run := startOwnersNode(f, func(c *Config) { c.AgentsOnBus = &AgentsOnBus{Owner: "ops"} })
	n := &fuzzedNode{bob: bob, alice: alice, run: run, nc: connectRole(f, h, bus.RoleClient), before: map[string]string{}}
	for _, path := range []string{"", "/logs?log=" + run + ".super", "/logs?log=" + run + ".root"} {
		n.before[path] = n.readRun(f, path)
	}
	return n
}

func (n *fuzzedNode) readRun(t testing.TB, path string) string {
	t.Helper()
	w := n.alice
	w.t = t
	status, _, raw := w.send(w.request("GET", "/api/v1/runs/"+n.run+path, ""))
	if status != http.StatusOK || len(raw) == 0 {
		t.Fatalf("the run of alice%s: %d %s", path, status, raw)
	}
	return string(raw)
}

// checkUnchanged fails if the node does not answer alice, or her run or its logs are not what they were.
func (n *fuzzedNode) checkUnchanged(t *testing.T) {
	t.Helper()
	for path, before := range n.before {
		if after := n.readRun(t, path); after != before {
			t.Errorf("the run of alice%s was %s\nand is %s", path, before, after)
		}
	}
}

// send sends a request as bob, and checks the answer: none says that the node failed.
func (n *fuzzedNode) send(t *testing.T, method, path, body string, header map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fuzzPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, n.bob.url+path, strings.NewReader(body))
	if err != nil {
		return // no client can send it
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	r.Header.Set("Authorization", "Bearer "+n.bob.token)
	reply, err := n.bob.http.Do(r)
	if err != nil {
		if ctx.Err() == nil && !isUnsendable(err) {
			t.Errorf("%s %q %q: %v", method, path, body, err)
		}
		return
	}
	defer reply.Body.Close()
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(http.MaxBytesReader(nil, reply.Body, 1<<20)); err != nil && ctx.Err() == nil {
		t.Errorf("%s %q %q: %v", method, path, body, err)
	}
	if reply.StatusCode >= http.StatusInternalServerError || strings.Contains(raw.String(), n.alice.token) {
		t.Errorf("%s %q %q: %d %.400s", method, path, body, reply.StatusCode, &raw)
	}
	n.checkUnchanged(t)
}

// isUnsendable reports that Go's HTTP client itself refuses a request.
func isUnsendable(err error) bool {
	return strings.Contains(err.Error(), "net/http: invalid") || strings.Contains(err.Error(), "unsupported protocol")
}

// ask sends a message, and checks that the answer, if it comes in time, does not say that the node failed.
func (n *fuzzedNode) ask(t *testing.T, subject string, body []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fuzzPatience)
	defer cancel()
	reply, err := n.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrMaxPayload):
	case err != nil:
		t.Errorf("%q %q: %v", subject, body, err)
	default:
		if code := reply.Header.Get("Nats-Service-Error-Code"); code >= "500" && code != fmt.Sprint(http.StatusServiceUnavailable) {
			t.Errorf("%q %q: %s %s", subject, body, code, reply.Header.Get("Nats-Service-Error"))
		}
	}
	n.checkUnchanged(t)
}

// exampleRun is the run of the examples in docs/control.md.
const exampleRun = "01k9z3abcdefghjkmnpqrstvwx"

// FuzzVerbs: whatever an owner sends to a verb, the run of another owner does not change, and the node answers.
func FuzzVerbs(f *testing.F) {
	n := startFuzzed(f)
	doc, err := os.ReadFile("../../docs/control.md")
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`nats req troupe\.cmd\.([a-z]+) '([^']*)'`).FindAllStringSubmatch(string(doc), -1) {
		f.Add(m[1], []byte(m[2]))
		f.Add(m[1], []byte(strings.ReplaceAll(m[2], exampleRun, n.run)))
	}
	f.Fuzz(func(t *testing.T, verb string, body []byte) {
		n.ask(t, "troupe.cmd.as.bob."+verb, body)
	})
}

// FuzzPrompts: whatever is sent to an exported agent and to the controller of sessions changes no run of an owner. Who may
// publish there is an operator, and may stop a session by its name: no seed names the conversation of alice.
func FuzzPrompts(f *testing.F) {
	n := startFuzzed(f)
	for _, body := range []string{"Say hello", `{"prompt":"Say hello"}`, attach("a.txt", "aGVsbG8="), `{"prompt":"x","troupe":{"run_id":"` + n.run + `","max_turns":1}}`,
		`{"prompt":"x","troupe":{"conversation":"plans"}}`, `{"session_id":"plans","agent":"assistant","cwd":"/"}`, `{"prompt":`} {
		for _, verb := range []string{"prompt", "status", "spawn", "list", "stop"} {
			f.Add(verb, "assistant", []byte(body))
			f.Add(verb, "control", []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, verb, agent string, body []byte) {
		n.ask(t, "agents."+verb+".troupe.ops."+agent, body)
	})
}

// FuzzREST: whatever an owner sends to the HTTP API, the run of another owner does not change, and no answer says that
// the node failed.
func FuzzREST(f *testing.F) {
	n := startFuzzed(f)
	for _, d := range httpDoors(n.run) {
		f.Add(d.method, strings.TrimPrefix(d.path, "/api/v1"), d.body)
	}
	for _, path := range []string{"/runs", "/runs/x", "/runs/" + n.run + "/logs", "/nodes", "/questions", "/conversations", "/conversations/notes", "/schedules", "/agents", "/policy", "/tickets", "/sessions"} {
		f.Add("GET", path, "")
		f.Add("POST", path, `{"run_id":"`+n.run+`","prompt":"x","max_tokens":7,"policy":{"rules":[{}]},"loop_options":{}}`)
		f.Add("DELETE", path, "")
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		n.send(t, method, "/api/v1"+path, body, map[string]string{"Content-Type": "application/json"})
	})
}

// FuzzMCP is FuzzREST for the MCP server.
func FuzzMCP(f *testing.F) {
	n := startFuzzed(f)
	for _, call := range []string{`"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}`, `"tools/list"`, `"ping"`,
		`"tools/call","params":{"name":"cancel","arguments":{"run_id":"` + n.run + `"}}`, `"tools/call","params":{"name":"run","arguments":{"prompt":"x"}}`, `"resources/list"`, `"prompts/list"`} {
		f.Add("POST", `{"jsonrpc":"2.0","id":1,"method":`+call+`}`, "")
	}
	f.Add("GET", "", "x")
	f.Add("DELETE", "", "x")
	f.Fuzz(func(t *testing.T, method, body, session string) {
		n.send(t, method, "/mcp", body, map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": headerText(session)})
	})
}

// FuzzA2A is FuzzREST for the A2A server.
func FuzzA2A(f *testing.F) {
	n := startFuzzed(f)
	for _, call := range []string{`"CancelTask","params":{"id":"` + n.run + `"}`, `"GetTask","params":{"id":"` + n.run + `","historyLength":1}`, `"SendMessage","params":` + textMessage("A", ""),
		`"SendStreamingMessage","params":` + textMessage("A", `,"contextId":"notes"`), `"SubscribeToTask","params":{"id":"` + n.run + `"}`, `"ListTasks","params":{"pageSize":1}`} {
		f.Add("coordinator", `{"jsonrpc":"2.0","id":"1","method":`+call+`}`, "1.0")
	}
	f.Fuzz(func(t *testing.T, agent, body, version string) {
		n.send(t, "POST", "/a2a/"+agent, body, map[string]string{"Content-Type": "application/json", "A2A-Version": headerText(version)})
	})
}

// FuzzOpenAI is FuzzREST for the API in OpenAI's form.
func FuzzOpenAI(f *testing.F) {
	n := startFuzzed(f)
	for _, body := range []string{`{"model":"coordinator","messages":[{"role":"user","content":"x"}],"troupe":{"conversation":"notes"}}`, `{"model":"coordinator","input":"x","stream":true}`,
		`{"model":"coordinator","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"b","arguments":"{}"}}]}],"stream":true,"n":2}`, `{"model":`} {
		f.Add("POST", "chat/completions", body)
		f.Add("POST", "responses", body)
	}
	f.Add("GET", "models", "")
	f.Fuzz(func(t *testing.T, method, path, body string) {
		n.send(t, method, "/v1/"+path, body, map[string]string{"Content-Type": "application/json"})
	})
}

// FuzzEventStreams is FuzzREST for streams of events: their cursor is from the client.
func FuzzEventStreams(f *testing.F) {
	n := startFuzzed(f)
	mine := client.NewID()
	n.bob.post("/api/v1/runs", fmt.Sprintf(`{"run_id":%q,"prompt":"x","agent":"assistant","model":"script/%s"}`, mine, "no-such-file"), http.StatusBadRequest, nil)
	for _, cursor := range []string{"", "0", "1.super:3", n.run + ".super:1", "no cursor", "-1", strings.Repeat("9", 30)} {
		f.Add(n.run, cursor, "")
		f.Add("x", cursor, "follow=false")
		f.Add(mine, cursor, "follow=false&after="+cursor)
	}
	f.Fuzz(func(t *testing.T, run, cursor, query string) {
		n.send(t, "GET", "/api/v1/runs/"+run+"/events?"+query, "", map[string]string{"Accept": "text/event-stream", "Last-Event-ID": headerText(cursor)})
	})
}

// headerText is the text as far as a header can have it.
func headerText(text string) string {
	if !utf8.ValidString(text) {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}
