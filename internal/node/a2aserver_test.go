package node

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/a2aclient"
)

// a2aAnswer is a response of the protocol, as a client reads it.
type a2aAnswer struct {
	Result struct {
		a2aTask
		Task a2aTask `json:"task"`
	} `json:"result"`
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

type a2aTask struct {
	ID        string `json:"id"`
	ContextID string `json:"contextId"`
	Status    struct {
		State   string `json:"state"`
		Message struct {
			Parts []struct {
				Text string `json:"text"`
			} `json:"parts"`
		} `json:"message"`
	} `json:"status"`
	Artifacts []struct {
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"artifacts"`
}

func (t a2aTask) text() string {
	if len(t.Artifacts) == 0 {
		return ""
	}
	return t.Artifacts[0].Parts[0].Text
}

// askA2A sends a request about an agent.
func (w webClient) askA2A(agent, method, params string, edits ...func(*http.Request)) a2aAnswer {
	w.t.Helper()
	edits = append([]func(*http.Request){func(r *http.Request) { r.Header.Set("A2A-Version", "1.0") }}, edits...)
	code, _, raw := w.send(w.request("POST", "/a2a/"+agent, fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","method":%q,"params":%s}`, method, params), edits...))
	var a a2aAnswer
	if err := json.Unmarshal(raw, &a); err != nil || code != http.StatusOK {
		w.t.Fatalf("%s: %d %s %v", method, code, raw, err)
	}
	return a
}

// textMessage are the parameters of a message with a text, and more of them.
func textMessage(text, more string) string {
	return fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":%q}]%s}}`, text, more)
}

// An agent of one node calls an agent of another over A2A, in a stream.
//
//behaviour:shows H5
func TestAgentOfANodeIsADelegateOverA2A(t *testing.T) {
	t.Parallel()
	served, web := startWeb(t, func(c *Config) { c.Model = writeScript(t, "agents:\n  assistant: [{text: \"A is safe: {{user}}\"}]\n") })
	dir := writeBoss(t, "a2a/reviewer")
	caller := startBossNode(t, dir, func(c *Config) {
		c.A2AAgents = []a2aclient.Agent{{Name: "reviewer", URL: web.url + "/a2a/assistant", TokenEnv: "REVIEWER"}}
		c.Env = func(name string) string { return map[string]string{"REVIEWER": web.token}[name] }
	})
	id, c := askBoss(t, caller, client.RunRequest{Prompt: "a2a/reviewer", Agents: dir, Model: writeScript(t, bossScript)})
	if end, _ := endOfCall(t, c, id); end.Error || end.Text != "A is safe: {Review A." {
		t.Errorf("%+v", end)
	}
	if list, err := connectClient(t, served).List(testContext(t)); err != nil || len(list) != 1 || list[0].State != client.RunFinished {
		t.Errorf("%+v %v", list, err)
	}
}

// An agent that calls itself by A2A calls itself once: a run that another program has started calls no agents of other programs.
//
//behaviour:shows H5
func TestAgentThatCallsItselfByA2AEnds(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	loop := "---\nname: loop\ndescription: Calls itself.\nx-troupe: {delegates: [a2a/loop], export: true}\n---\nWork.\n"
	if err := errors.Join(os.MkdirAll(filepath.Join(home, "agents"), 0o700), os.WriteFile(filepath.Join(home, "agents", "loop.md"), []byte(loop), 0o600)); err != nil {
		t.Fatal(err)
	}
	var web webClient
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { // its address is known before that of the node
		to, err := url.Parse(web.url)
		if err != nil {
			t.Error(err)
		}
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}})
	defer front.Close()
	var h *Node
	h, web = startWeb(t, func(c *Config) {
		c.Model, c.UserDirs = writeScript(t, "repeat: true\ndefault:\n  - calls: [{name: delegate, args: {agent: a2a/loop, task: \"Again.\"}}]\n  - text: \"[done] It said: {{last}}\"\n"), true
		c.Permissions = spec.Permissions{Allow: []spec.PermissionRule{{Text: "delegate(a2a/*)"}}}
		c.A2AAgents = []a2aclient.Agent{{Name: "loop", URL: front.URL + "/a2a/loop", TokenEnv: "LOOP"}}
		c.Env = func(name string) string { return map[string]string{"LOOP": web.token}[name] }
	})
	c := connectClient(t, h)
	info := waitFinished(t, c, beginRun(t, c, client.RunRequest{Agent: "loop", Prompt: "Begin."}), spec.Completed)
	if list, err := c.List(testContext(t)); err != nil || len(list) != 2 || !strings.Contains(info.Result.Text, "delegate(*/*)") {
		t.Errorf("%d runs, %v: %s", len(list), err, info.Result.Text)
	}
}

// The methods of the protocol are requests about runs: send, get and cancel. What is not supported is refused with its code.
func TestA2AServer(t *testing.T) {
	t.Parallel()
	h, web := startWeb(t, func(c *Config) {
		c.Model = writeScript(t, `
agents:
  assistant:
    - {text: "Hello, {{user}}."}
`)
	})
	_, _, first := web.send(web.request("GET", "/.well-known/agent-card.json", ""))
	if !strings.Contains(string(first), `/a2a/assistant"`) {
		t.Errorf("the card of the node is not that of its first agent: %s", first)
	}
	code, _, raw := web.send(web.request("GET", "/a2a/assistant/.well-known/agent-card.json", ""))
	if want := fmt.Sprintf(`"url":%q`, web.url+"/a2a/assistant"); code != http.StatusOK || !strings.Contains(string(raw), want) {
		t.Errorf("the card: %d %s", code, raw)
	}
	a := web.askA2A("assistant", "SendMessage", textMessage("A", `,"contextId":"talk"`))
	if got := a.Result.Task; got.Status.State != "TASK_STATE_COMPLETED" || got.text() != "Hello, A." || got.ContextID != "talk" {
		t.Errorf("%+v", a)
	}
	info, err := connectClient(t, h).Get(testContext(t), a.Result.Task.ID)
	if err != nil || info.Conversation != "talk" || info.Result.Reason != spec.Completed {
		t.Errorf("%+v %v", info, err)
	}
	if got := web.askA2A("assistant", "GetTask", fmt.Sprintf(`{"id":%q}`, info.RunID)).Result; got.ID != info.RunID || got.text() != "Hello, A." {
		t.Errorf("%+v", got)
	}
	web.checkA2ARefusals(info.RunID)
}

// checkA2ARefusals sends what the server refuses. run is a run that has ended.
func (w webClient) checkA2ARefusals(run string) {
	w.t.Helper()
	t := w.t
	other := func(version string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("A2A-Version", version) }
	}
	for _, k := range []struct {
		method, params string
		code           int
		edit           func(*http.Request)
	}{
		{"SendMessage", textMessage("A", ""), -32009, other("0.3")},
		{"SendMessage", textMessage("A", ""), -32009, other("")},
		{"SendMessage", `{"message":{"parts":[]}}`, -32602, nil},
		{"SendMessage", textMessage("", ""), -32602, nil},
		{"SendMessage", `[]`, -32602, nil},
		{"SendMessage", textMessage("A", `,"taskId":"`+run+`"`), -32004, nil},
		{"SendMessage", textMessage("A", `,"contextId":"../x"`), -32602, nil},
		{"SendMessage", `{"message":{"messageId":"m","parts":[{"raw":"AAAA"}]}}`, -32005, nil},
		{"SendMessage", `{"message":{"messageId":"m","parts":[{"text":"A"}]},"configuration":{"taskPushNotificationConfig":{"url":"https://x"}}}`, -32003, nil},
		{"SendMessage", `{"message":{"messageId":"m","parts":[{"text":"A"}]},"metadata":{"troupe":{"dir":"/etc"}}}`, -32602, nil},
		{"GetTask", `{"id":"` + client.NewID() + `"}`, -32001, nil},
		{"GetTask", `{"id":"../x"}`, -32001, nil},
		{"GetTask", `{}`, -32602, nil},
		{"CancelTask", `{"id":"` + client.NewID() + `"}`, -32001, nil},
		{"CancelTask", `{"id":"` + run + `"}`, -32002, nil},
		{"SubscribeToTask", `{"id":"` + run + `"}`, -32004, nil},
		{"ListTasks", `{}`, -32004, nil},
		{"CreateTaskPushNotificationConfig", `{}`, -32003, nil},
		{"GetExtendedAgentCard", `{}`, -32007, nil},
		{"message/send", `{}`, -32601, nil},
	} {
		edit := k.edit
		if edit == nil {
			edit = other("1.0")
		}
		if a := w.askA2A("assistant", k.method, k.params, edit); a.Error.Code != k.code || a.Error.Message == "" {
			t.Errorf("%s %s: %+v, want %d", k.method, k.params, a, k.code)
		}
	}
	for body, want := range map[string]string{"{": "-32700", `{"jsonrpc":"2.0","method":"GetTask"}`: "-32600", `{"jsonrpc":"2.0","id":{},"method":"GetTask"}`: "-32600"} {
		if _, _, raw := w.send(w.request("POST", "/a2a/assistant", body)); !strings.Contains(string(raw), want) {
			t.Errorf("%s: %s", body, raw)
		}
	}
	for path, want := range map[string]int{"/a2a/stranger": http.StatusNotFound, "/a2a/assistant/x": http.StatusNotFound} {
		if code, _, raw := w.send(w.request("POST", path, "{}")); code != want {
			t.Errorf("%s: %d %s", path, code, raw)
		}
	}
	noToken := func(r *http.Request) { r.Header.Del("Authorization") }
	for _, r := range []*http.Request{w.request("POST", "/a2a/assistant", "{}", noToken), w.request("GET", "/a2a/assistant/.well-known/agent-card.json", "", noToken), w.request("GET", "/.well-known/agent-card.json", "", noToken)} {
		if code, _, raw := w.send(r); code != http.StatusUnauthorized {
			t.Errorf("without the token: %d %s", code, raw)
		}
	}
}

// A task that works is streamed, is subscribed to, and is canceled; a client that goes away does not end it. A run that waits for a
// person is one whose input is required, and no message answers it.
func TestA2ATasksAtWork(t *testing.T) {
	t.Parallel()
	_, web := startWeb(t, func(c *Config) {
		c.Model = writeScript(t, `
agents:
  coordinator:
    - {text: "Never.", delay: 10m}
  assistant:
    - calls: [{name: ask_human, args: {question: "Which one?"}}]
    - text: "You said {{last}}"
`)
	})
	r := web.request("POST", "/a2a/coordinator", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":`+textMessage("A", "")+`}`, func(r *http.Request) { r.Header.Set("A2A-Version", "1.0") })
	reply, err := web.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var first a2aAnswer
	lines := bufio.NewScanner(reply.Body)
	for lines.Scan() && first.Result.Task.ID == "" {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(text), &first); err != nil {
				t.Fatal(err)
			}
		}
	}
	id := first.Result.Task.ID
	if err := reply.Body.Close(); err != nil || id == "" || first.Result.Task.Status.State != "TASK_STATE_SUBMITTED" {
		t.Fatalf("%+v %v", first, err)
	}
	if got := web.askA2A("coordinator", "GetTask", fmt.Sprintf(`{"id":%q}`, id)).Result; got.Status.State != "TASK_STATE_WORKING" && got.Status.State != "TASK_STATE_SUBMITTED" {
		t.Errorf("after its client has gone: %+v", got)
	}
	began := time.Now()
	if got := web.askA2A("coordinator", "CancelTask", fmt.Sprintf(`{"id":%q}`, id)).Result; got.Status.State != "TASK_STATE_CANCELED" || time.Since(began) > patience/2 {
		t.Errorf("canceled after %s: %+v", time.Since(began), got)
	}
	got := web.askA2A("assistant", "SendMessage", `{"message":{"messageId":"m","parts":[{"text":"Ask."}]},"metadata":{}}`).Result.Task
	if got.Status.State != "TASK_STATE_INPUT_REQUIRED" || len(got.Status.Message.Parts) == 0 || !strings.Contains(got.Status.Message.Parts[0].Text, "Which one?") {
		t.Fatalf("%+v", got)
	}
	if a := web.askA2A("assistant", "SendMessage", textMessage("The first.", `,"taskId":"`+got.ID+`"`)); a.Error.Code != -32004 || !strings.Contains(a.Error.Message, "troupe answer") {
		t.Errorf("%+v", a)
	}
	if got := web.askA2A("assistant", "CancelTask", fmt.Sprintf(`{"id":%q}`, got.ID)).Result; got.Status.State != "TASK_STATE_CANCELED" {
		t.Errorf("%+v", got)
	}
	if n := len(web.askA2A("assistant", "SendMessage", `{"message":{"messageId":"m","parts":[{"text":"A"}]},"configuration":{"returnImmediately":true}}`).Result.Task.ID); n == 0 {
		t.Error("no task at once")
	}
}
