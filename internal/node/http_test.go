package node

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/test/openapi"
)

// webClient asks the HTTP server of a node.
type webClient struct {
	t          testing.TB
	url, token string
	http       *http.Client
}

// startWeb starts a node with an HTTP server.
func startWeb(t testing.TB, change ...func(*Config)) (*Node, webClient) {
	t.Helper()
	return startWebIn(t, t.TempDir(), change...)
}

// startWebIn is startWeb with a state directory.
func startWebIn(t testing.TB, state string, change ...func(*Config)) (*Node, webClient) {
	t.Helper()
	h := startNode(t, state, append([]func(*Config){func(c *Config) { c.HTTP = &HTTPConfig{Address: "127.0.0.1:0"} }}, change...)...)
	token, err := statedir.ReadHTTPToken(state)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return h, webClient{t, h.HTTPURL(), token, &http.Client{Transport: transport}}
}

// request makes a request with the token; edits change it.
func (w webClient) request(method, path, body string, edits ...func(*http.Request)) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(testContext(w.t), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// send sends a request, and returns the status and the body of the answer.
func (w webClient) send(r *http.Request) (int, http.Header, []byte) {
	w.t.Helper()
	reply, err := w.http.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer reply.Body.Close()
	raw, err := io.ReadAll(reply.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := apiDocument().Check(r.Method, r.URL.Path, reply.StatusCode, reply.Header, raw); err != nil {
		w.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	return reply.StatusCode, reply.Header, raw
}

// apiDocument is the OpenAPI document: every answer is compared with it.
var apiDocument = sync.OnceValue(func() *openapi.Document {
	d, err := openapi.Parse(httpapi.Document())
	if err != nil {
		panic(err)
	}
	return d
})

// get reads a path that must answer with a status, into doc.
func (w webClient) get(path string, status int, doc any) {
	w.t.Helper()
	w.expect(w.request("GET", path, ""), status, doc)
}

func (w webClient) post(path, body string, status int, doc any) {
	w.t.Helper()
	w.expect(w.request("POST", path, body), status, doc)
}

func (w webClient) expect(r *http.Request, status int, doc any) {
	w.t.Helper()
	code, _, raw := w.send(r)
	if code != status {
		w.t.Fatalf("%s %s: %d %s", r.Method, r.URL, code, raw)
	}
	if doc == nil {
		return
	}
	if err := json.Unmarshal(raw, doc); err != nil {
		w.t.Fatalf("%s %s: %v\n%s", r.Method, r.URL, err, raw)
	}
}

// All that the CLI shows of a run is there over HTTP, in the same form.
func TestRunIsStartedAndReadOverHTTP(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, w := startWeb(t)
	c := connectClient(t, h)
	id := client.NewID()
	body := fmt.Sprintf(`{"run_id":%q,"prompt":"all of it","model":%q}`, id, writeScript(t, family))
	var accepted client.RunAccepted
	w.post("/api/v1/runs", body, http.StatusCreated, &accepted)
	if accepted.RunID != id || accepted.Existed {
		t.Errorf("%+v", accepted)
	}
	w.post("/api/v1/runs", body, http.StatusOK, &accepted) // the request is idempotent
	if !accepted.Existed {
		t.Errorf("again: %+v", accepted)
	}
	var result event.Result
	w.get("/api/v1/runs/"+id+"/result?wait=60s", http.StatusOK, &result)
	if result.Run != id || result.Reason != spec.Completed || result.Partial {
		t.Errorf("%+v", result)
	}
	info, err := c.Get(testContext(t), id)
	if err != nil {
		t.Fatal(err)
	}
	if info.Ended == "" {
		t.Errorf("a run that has ended has no end: %+v", info)
	}
	want, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{id, id[:20], "last"} {
		if _, _, got := w.send(w.request("GET", "/api/v1/runs/"+name, "")); strings.TrimSpace(string(got)) != string(want) {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
	var tree event.Result
	w.get("/api/v1/runs/"+id+"/tree", http.StatusOK, &tree)
	var budget client.RunBudget
	w.get("/api/v1/runs/"+id+"/budget", http.StatusOK, &budget)
	var spans []map[string]any
	w.get("/api/v1/runs/"+id+"/timeline", http.StatusOK, &spans)
	var transcript struct{ Messages []any }
	w.get("/api/v1/runs/"+id+"/transcript?agent=root", http.StatusOK, &transcript)
	if len(tree.Agents) != len(info.Result.Agents) || budget.Budget.Used.Tokens != result.Budget.Used || len(spans) == 0 || len(transcript.Messages) == 0 {
		t.Errorf("tree %d, budget %+v, %d spans, %d messages", len(tree.Agents), budget.Budget, len(spans), len(transcript.Messages))
	}
	var questions []client.Question
	w.get("/api/v1/runs/"+id+"/questions", http.StatusOK, &questions)
	var nodes []client.NodeInfo
	w.get("/api/v1/nodes", http.StatusOK, &nodes)
	w.get("/api/v1/openapi.json", http.StatusOK, nil)
	w.get("/readyz", http.StatusOK, nil)
	w.get("/api/v1/questions", http.StatusOK, nil)
	if len(questions) != 0 || len(nodes) != 1 || nodes[0].HTTP != w.url {
		t.Errorf("%v %+v", questions, nodes)
	}
}

// A list has pages, whose links lead through all runs once.
func TestPagesOfRunsOverHTTP(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, w := startWeb(t)
	c := connectClient(t, h)
	model, want := writeScript(t, "default: [{text: done}]"), []string{}
	for range 5 {
		id := beginRun(t, c, client.RunRequest{Model: model})
		waitFinished(t, c, id, spec.Completed)
		want = append(want, id)
	}
	slices.Reverse(want)
	var got []string
	for path := "/api/v1/runs?limit=2&since=1h"; path != ""; {
		code, header, raw := w.send(w.request("GET", path, ""))
		var page []client.RunInfo
		if err := json.Unmarshal(raw, &page); err != nil || code != http.StatusOK || len(page) > 2 {
			t.Fatalf("%d %v %s", code, err, raw)
		}
		for _, i := range page {
			got = append(got, i.RunID)
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), ">")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var none []client.RunInfo
	w.get("/api/v1/runs?state=live", http.StatusOK, &none)
	if len(none) != 0 {
		t.Errorf("%+v", none)
	}
}

// What a person may say to a run is said over HTTP: a message, an answer, another budget and policy, and
// to stop.
func TestRunIsControlledOverHTTP(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	path := "/api/v1/runs/" + id

	var done httpapi.Recorded
	w.post(path+"/steer", `{"text":"be quick","request_id":"mine"}`, http.StatusOK, &done)
	if done != (httpapi.Recorded{RunID: id, Request: "mine"}) {
		t.Errorf("%+v", done)
	}
	w.post(path+"/budget", `{"limits":{"tokens":777777},"patch":true}`, http.StatusOK, &done)
	awaitEvents(t, c, id, event.KindBudgetChanged, 1)
	var budget client.RunBudget
	w.get(path+"/budget", http.StatusOK, &budget)
	if done.Request == "" || budget.Limits.Tokens != 777777 {
		t.Errorf("%+v %+v", done, budget.Limits)
	}
	w.post(path+"/policy", `{"policy":{}}`, http.StatusOK, &done)
	w.post(path+"/policy", `{"policy":{"rules":[{"name":"x","on":"turn","when":"tokns > 3","why":"y"}]}}`, http.StatusBadRequest, nil)
	w.post(path+"/policy", `{"policy":{"rules":[{"name":"x","on":"turn","when":"tokens > 1e9","why":"y"}]},"by":"ada"}`, http.StatusOK, &done)
	awaitEvents(t, c, id, event.KindPolicyApplied, 2)
	var rules client.RunPolicy
	w.get(path+"/policy", http.StatusOK, &rules)
	if len(rules.Rules) != 1 || rules.Rules[0].Expression != "tokens > 1e9" || rules.Set == nil || rules.Set.By != "ada" || rules.Version != 2 {
		t.Errorf("%+v", rules)
	}
	w.post(path+"/answer", `{"query":"none","decision":"perhaps"}`, http.StatusBadRequest, nil)
	w.post(path+"/steer", `{"run_id":"another","text":"x"}`, http.StatusBadRequest, nil)
	w.get(path+"/result", http.StatusAccepted, nil)
	var reply client.CancelReply
	w.post(path+"/cancel", `{"now":true,"why":"enough"}`, http.StatusOK, &reply)
	if reply.Agents == 0 {
		t.Errorf("%+v", reply)
	}
	openGate(t, gate)
	var result event.Result
	w.get(path+"/result?wait=1m", http.StatusOK, &result)
	if result.Subtype != "error_cancelled" {
		t.Errorf("%+v", result)
	}
	w.post(path+"/steer", `{"text":"more"}`, http.StatusConflict, nil)
}

// Whoever may not ask, or asks for what is not, is refused with a reason, and changes nothing.
func TestHTTPRefusesWhatItMust(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, w := startWeb(t)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	large := `{"prompt":"` + strings.Repeat("x", 600<<10) + `"}`
	runs, events := "/api/v1/runs", "/api/v1/runs/01k9z3/events"
	for _, c := range []struct {
		name   string
		r      *http.Request
		status int
		says   string
	}{
		{"no token", w.request("GET", runs, "", func(r *http.Request) { r.Header.Del("Authorization") }), 401, "no token"},
		{"another token", w.request("GET", runs, "", header("Authorization", "Bearer x"+w.token)), 401, "no token"},
		{"the token as a password", w.request("GET", runs, "", header("Authorization", "Basic "+w.token)), 401, "no token"},
		{"a probe without a token", w.request("GET", "/healthz", "", header("Authorization", "")), 401, "no token"},
		{"the token in the address", w.request("GET", runs+"?token="+w.token, "", header("Authorization", "")), 401, "no token"},
		{"a foreign host", w.request("GET", runs, "", host("evil.example.org")), 421, "evil.example.org"},
		{"a name that begins like this one", w.request("GET", runs, "", host("localhost.evil.example.org:80")), 421, "not asked as"},
		{"an address of another machine", w.request("GET", runs, "", host("192.0.2.1")), 421, "not asked as"},
		{"a foreign page", w.request("GET", runs, "", header("Origin", "https://evil.example.org")), 403, "evil.example.org"},
		{"a page of no origin", w.request("POST", runs, "{}", header("Origin", "null")), 403, "null"},
		{"a large body", w.request("POST", runs, large), 413, "524288"},
		{"no JSON", w.request("POST", runs, `{"prompt":`), 400, "not a valid request"},
		{"two documents", w.request("POST", runs, `{} {}`), 400, "more than one"},
		{"deep JSON", w.request("POST", runs, strings.Repeat(`{"policy":`, 20000)), 400, "not a valid request"},
		{"an unknown field", w.request("POST", runs, `{"promt":"x"}`), 400, "promt"},
		{"a field of another type", w.request("POST", runs, `{"prompt":7}`), 400, "prompt"},
		{"a form", w.request("POST", runs, `{}`, header("Content-Type", "text/plain")), 415, "text/plain"},
		{"no prompt", w.request("POST", runs, `{}`), 400, "prompt"},
		{"an id that is none", w.request("POST", runs, `{"run_id":"../x","prompt":"x"}`), 400, "id"},
		{"a directory that it may not have", w.request("POST", runs, `{"prompt":"x","dir":"/etc"}`), 403, "/etc"},
		{"an unknown run", w.request("GET", runs+"/"+client.NewID(), ""), 404, "no run"},
		{"events of an unknown run", w.request("GET", events, "", header("Accept", "text/event-stream")), 404, "no run"},
		{"a cursor that is none", w.request("GET", events+"?cursor=!", ""), 400, "cursor"},
		{"a cursor of another run", w.request("GET", events, "", header("Last-Event-ID", client.Positions{}.Text("other"))), 400, "other"},
		{"an unknown parameter", w.request("GET", runs+"?stat=live", ""), 400, "stat"},
		{"an unknown state", w.request("GET", runs+"?state=alive", ""), 400, "one of live"},
		{"another method", w.request("DELETE", runs, ""), 405, "GET or POST"},
		{"an unknown path", w.request("GET", "/api/v2/runs", ""), 404, "/api/v2/runs"},
		{"a path that climbs", w.request("GET", "/api/v1/runs/%2e%2e%2f%2e%2e/events", ""), 404, ""},
	} {
		status, got, raw := w.send(c.r)
		var p httpapi.Problem
		err := json.Unmarshal(raw, &p)
		if err != nil || status != c.status || p.Code != status || !strings.Contains(p.Error+p.Hint, c.says) {
			t.Errorf("%s: %d %s, want %d with %q (%v)", c.name, status, raw, c.status, c.says, err)
		}
		if got.Get("Access-Control-Allow-Origin") != "" || bytes.Contains(raw, []byte(w.token)) {
			t.Errorf("%s: %v %s", c.name, got, raw)
		}
	}
	list, err := connectClient(t, h).List(testContext(t))
	if err != nil || len(list) != 0 {
		t.Errorf("%v %+v", err, list)
	}
	w.expect(w.request("GET", runs, "", host("localhost:"+w.url[strings.LastIndexByte(w.url, ':')+1:]), func(r *http.Request) {
		r.Header.Set("Origin", "http://"+r.Host)
	}), http.StatusOK, nil)
}

// A page at localhost would have the origin of whatever another account lets listen at ::1, which browsers try first. It is
// served there only if the operator has named localhost, as that of a proxy.
func TestPageOfLocalhostIsSentToTheAddress(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for _, hosts := range [][]string{nil, {"localhost"}} {
		_, w := startWeb(t, func(c *Config) { c.HTTP.Hosts = hosts })
		w.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		r := w.request("GET", "/", "")
		r.Host = "localhost:" + w.url[strings.LastIndexByte(w.url, ':')+1:]
		reply, err := w.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		want, at := http.StatusTemporaryRedirect, w.url+"/"
		if hosts != nil {
			want, at = http.StatusOK, ""
		}
		if reply.StatusCode != want || reply.Header.Get("Location") != at {
			t.Errorf("with names %q: %d, %q", hosts, reply.StatusCode, reply.Header.Get("Location"))
		}
	}
}

// The token is a file that only this user can read, and stays the same for the next node.
func TestHTTPTokenIsPrivateAndStays(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	web := func(c *Config) { c.HTTP = &HTTPConfig{Address: "127.0.0.1:0"} }
	h := startNode(t, state, web)
	first, err := statedir.ReadHTTPToken(state)
	info, statErr := os.Stat(statedir.HTTPTokenPath(state))
	if err != nil || statErr != nil || info.Mode().Perm() != 0o600 || len(first) < 26 {
		t.Fatalf("%v %v %v", err, statErr, info)
	}
	if masked := string(h.mask.MaskBytes([]byte("a " + first))); strings.Contains(masked, first) {
		t.Errorf("the token is not masked: %s", masked)
	}
	file, err := statedir.ReadNodeFile(state)
	if err != nil || file.HTTP != h.HTTPURL() || file.HTTP == "" {
		t.Errorf("%v %+v", err, file)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	startNode(t, state, web)
	if second, err := statedir.ReadHTTPToken(state); err != nil || second != first {
		t.Errorf("%v: another token", err)
	}
	if err := os.Chmod(statedir.HTTPTokenPath(state), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := statedir.ReadHTTPToken(state); err == nil {
		t.Error("a token that others can read is used")
	}
}

// readStream reads events of a stream until its end, or until most of them.
func readStream(body io.Reader, most int) (ids []string, cursor string, ended bool) {
	lines := bufio.NewReader(body)
	id, heard := "", ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return ids, cursor, ended // what is not whole does not count
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "id":
			id = value
		case name == "event" && value == "end":
			ended = true
		case name == "data" && !ended:
			var e client.Event
			if json.Unmarshal([]byte(value), &e) == nil && e.Seq > 0 {
				heard = e.ID
			}
		case name == "" && id != "": // the end of an event
			if heard != "" {
				ids = append(ids, heard)
			}
			cursor, id, heard = id, "", ""
			if len(ids) >= most {
				return ids, cursor, false
			}
		}
	}
}

// readDropped follows a run after a cursor, and is dropped at random: after a time, and after some
// bytes, in the middle of an event too. complete: the server says that there is nothing more.
func (w webClient) readDropped(run, cursor string, random *rand.Rand, drop bool) (ids []string, next string, complete bool) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(testContext(w.t))
	defer cancel()
	r := w.request("GET", "/api/v1/runs/"+run+"/events", "", func(r *http.Request) {
		r.Header.Set("Accept", "text/event-stream")
		if cursor != "" {
			r.Header.Set("Last-Event-ID", cursor)
		}
	}).WithContext(ctx)
	bytesMax, most := int64(1<<30), 1<<30
	if drop {
		timer := time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, cancel)
		defer timer.Stop()
		bytesMax, most = 1+random.Int64N(3000), 1+random.IntN(3)
	}
	reply, err := w.http.Do(r)
	if err != nil {
		return nil, "", false // dropped before the answer
	}
	defer reply.Body.Close()
	ids, next, _ = readStream(io.LimitReader(reply.Body, bytesMax), most)
	return ids, next, reply.StatusCode == http.StatusNoContent
}

// An observer that is dropped 1,000 times, in the middle of events too, and comes back with the id of
// the last one that it has, ends with exactly the events of the logs.
//
//behaviour:shows I2
func TestFlappingStreamEndsWithTheEventsOfTheLogs(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	random := rand.New(rand.NewPCG(1, 2))
	const dropsMin = 1000
	var got []string
	for drops, cursor := 0, ""; ; drops++ {
		if drops == dropsMin/2 {
			openGate(t, gate)
		}
		ids, next, complete := w.readDropped(id, cursor, random, drops < dropsMin)
		got = append(got, ids...)
		if next != "" {
			cursor = next
		}
		if complete && drops >= dropsMin {
			t.Logf("dropped %d times", drops)
			break
		}
	}
	want, _ := pagedEvents(t, c, id)
	compareLogs(t, got, want)
}

// A reader that reads nothing is disconnected, and the run and other readers are served meanwhile.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	address := strings.TrimPrefix(w.url, "http://")
	for range httpapi.StreamsMax {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "GET /api/v1/runs/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", id, address, w.token)
		if err != nil {
			t.Fatal(err)
		}
		if status, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(status, "200") { // and nothing more
			t.Fatalf("%q %v", status, err)
		}
	}
	code, header, raw := w.send(w.request("GET", "/api/v1/runs/"+id+"/events", "", func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") }))
	if code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("%d %s", code, raw)
	}
	began := time.Now()
	openGate(t, gate)
	waitFinished(t, c, id, spec.Completed)
	t.Logf("finished beside %d readers that read nothing after %s", httpapi.StreamsMax, time.Since(began))
	var page httpapi.EventList
	w.get("/api/v1/runs/"+id+"/events?kind=run,tool.started&agent=super", http.StatusOK, &page)
	if len(page.Events) != 2 || page.More {
		t.Errorf("%d events of the run: %s", len(page.Events), page.Events)
	}
}

// Prometheus sees what a run did, and an operator reads in the log when it began, ended, failed and was
// taken over.
//
//behaviour:shows I3
func TestMetricsAndLogLinesOfRuns(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	var log lockedBuffer
	logged := func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
	h, w := startWeb(t, logged)
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: writeScript(t, family)})
	waitFinished(t, c, id, spec.Completed)
	failed := beginRun(t, c, client.RunRequest{Model: writeScript(t, "default: [{calls: [{name: get_run_journal}]}, {text: cut}]"), MaxTurns: 1})
	if info, err := c.Wait(testContext(t), failed); err != nil || !info.Result.IsError {
		t.Fatalf("%v %+v", err, info.Result)
	}
	waitUntil(t, "both runs have ended for the metrics", func() bool {
		_, _, raw := w.send(w.request("GET", "/metrics", ""))
		return strings.Contains(string(raw), "troupe_runs_active 0")
	})
	code, header, raw := w.send(w.request("GET", "/metrics", ""))
	text := string(raw)
	if code != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%d %s", code, header)
	}
	for _, line := range []string{
		"troupe_runs_started_total 2", `troupe_runs_finished_total{stop_reason="completed"} 1`, "troupe_logs_writable 1", "troupe_node_ready 1",
		`troupe_delegations_total{outcome="ok"} 3`, `gen_ai_client_token_usage_bucket{gen_ai_operation_name="chat",gen_ai_provider_name="troupe.script",gen_ai_request_model="script",gen_ai_token_type="output",le="1"}`,
		`gen_ai_invoke_agent_inference_calls_bucket{gen_ai_agent_name="assistant",gen_ai_operation_name="invoke_agent",le="0"} 0`,
		`gen_ai_workflow_duration_seconds_count{error_type="",gen_ai_operation_name="invoke_workflow",gen_ai_workflow_name="assistant"} 1`,
		`troupe_build_info{node="host",version=`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if strings.Contains(text, id) || strings.Contains(text, os.TempDir()) {
		t.Error("a label is a run or a path")
	}
	if t.Failed() {
		t.Log(text)
	}
	for _, line := range []string{`level=INFO msg="run started" run=` + id + " agent=assistant", `level=INFO msg="run finished" run=` + id + " stop_reason=completed", `level=WARN msg="run failed" run=` + failed} {
		if !strings.Contains(string(log.copyBytes()), line) {
			t.Errorf("the log lacks %s:\n%s", line, log.copyBytes())
		}
	}
}

// A run that another process left is logged and counted as taken over, once.
func TestTakeoverIsLogged(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	model, gate, agents := heldFamily(t)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := startNode(t, state, roots)
	c := connectClient(t, first)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)
	var log lockedBuffer
	second := startNode(t, state, roots, func(c *Config) {
		c.ResumeAll, c.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
	})
	waitFinished(t, connectClient(t, second), id, spec.Completed)
	if n := strings.Count(string(log.copyBytes()), `msg="run taken over" run=`+id); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.copyBytes())
	}
}
