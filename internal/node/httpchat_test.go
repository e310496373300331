package node

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/httpapi"
)

// A chat client of OpenAI's API talks to an agent: at once, as a stream, and with a history.
func TestChatClientTalksToAnAgent(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model := writeScript(t, "default: [{calls: [{name: get_run_journal}], text: I look.}, {text: \"it is 42\"}]")
	h, w := startWeb(t, func(c *Config) { c.Model = model })
	var models httpapi.ChatModels
	w.get("/v1/models", http.StatusOK, &models)
	if len(models.Data) == 0 || models.Data[0].ID != "coordinator" {
		t.Errorf("%+v", models)
	}
	w.get("/v1/models/coordinator", http.StatusOK, nil)
	w.get("/v1/models/nobody", http.StatusNotFound, nil)

	var done httpapi.ChatCompletion
	ask := `{"model":"coordinator","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},
		{"role":"user","content":[{"type":"text","text":"what is it?"}]}],"max_tokens":7,"user":"me"`
	w.post("/v1/chat/completions", ask+"}", http.StatusOK, &done)
	if done.Object != "chat.completion" || len(done.Choices) != 1 || done.Choices[0].Message.Content != "it is 42" || *done.Choices[0].FinishReason != "stop" || done.Usage.Total == 0 {
		t.Errorf("%+v", done)
	}
	var transcript struct{ Messages []struct{ Role, Text string } }
	w.get("/api/v1/runs/"+done.Troupe.RunID+"/transcript", http.StatusOK, &transcript)
	if m := transcript.Messages; len(m) < 4 || m[0].Text != "hello" || m[1].Text != "hi" || !strings.Contains(m[2].Text, "Be brief.\n\nwhat is it?") {
		t.Errorf("%+v", m)
	}

	text, last := readChat(t, w, `{"messages":[{"role":"user","content":"what is it?"}],"stream":true,"stream_options":{"include_usage":true}}`)
	if text != "I look.\n\nit is 42" || last.Usage == nil || last.Usage.Total == 0 || len(last.Choices) != 0 || last.Troupe.Reason != string(spec.Completed) {
		t.Errorf("%q %+v", text, last)
	}
	list, err := connectClient(t, h).List(testContext(t))
	if err != nil || len(list) != 2 {
		t.Errorf("%v %+v", err, list)
	}
}

// readChat reads a stream to its end: all its text, and its last chunk.
func readChat(t *testing.T, w webClient, body string) (text string, last httpapi.ChatCompletion) {
	t.Helper()
	reply, err := w.http.Do(w.request("POST", "/v1/chat/completions", body))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	lines := bufio.NewScanner(reply.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return text, last
		}
		last = httpapi.ChatCompletion{}
		if err := json.Unmarshal([]byte(data), &last); err != nil || last.Object != "chat.completion.chunk" {
			t.Fatalf("%v %s", err, data)
		}
		for _, c := range last.Choices {
			text += c.Delta.Content
		}
	}
	t.Fatalf("the stream has no end after %q", text)
	return text, last
}

// What an agent cannot do is refused in the form that chat clients read.
func TestChatRefusesWhatAnAgentCannot(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, w := startWeb(t, func(c *Config) { c.Model = writeScript(t, "default: [{text: x}]") })
	user := `"messages":[{"role":"user","content":"x"}]`
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"model":"nobody",` + user + `}`:                                 {404, "nobody"},
		`{"n":2,` + user + `}`:                                            {400, "n must be 1"},
		`{"tools":[{}],` + user + `}`:                                     {400, "tools"},
		`{"messages":[]}`:                                                 {400, "last message"},
		`{"messages":[{"role":"assistant","content":"x"}]}`:               {400, "last message"},
		`{"messages":[{"role":"tool","content":"x"},{"role":"user"}]}`:    {400, "role"},
		`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`: {400, "image_url"},
		`{"messages":[{"role":"user","content":7}]}`:                      {400, "neither"},
		`{"troupe":{"dir":"/etc"},` + user + `}`:                          {403, "/etc"},
		`{"troupe":{"run_id":"` + client.NewID() + `"},` + user + `}`:     {400, "troupe.run_id"},
		`{"troupe":{"every":"1h"},` + user + `}`:                          {400, "troupe.every"},
		`{"troupe":{"max_token":7},` + user + `}`:                         {400, "max_token"},
		`{"messages":`: {400, "not a valid request"},
	} {
		var p httpapi.ChatProblem
		w.post("/v1/chat/completions", body, want.status, &p)
		if !strings.Contains(p.Error.Message, want.says) || p.Error.Type != "invalid_request_error" {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if list, err := connectClient(t, h).List(testContext(t)); err != nil || len(list) != 0 {
		t.Errorf("%v %+v", err, list)
	}
}

// Who stops an answer in a chat stops the run.
func TestChatClientThatGoesAwayCancelsItsRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	defer openGate(t, gate)
	c := connectClient(t, h)
	ctx, leave := context.WithCancel(testContext(t))
	body, err := json.Marshal(map[string]any{"model": "boss", "stream": true, "messages": []any{map[string]any{"role": "user", "content": "go"}},
		"troupe": client.RunRequest{Model: model, Agents: agents}})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := w.http.Do(w.request("POST", "/v1/chat/completions", string(body)).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	run := reply.Header.Get("Troupe-Run")
	awaitEvents(t, c, run, event.KindToolStarted, 2)
	leave()
	reply.Body.Close()
	if info, err := c.Wait(testContext(t), run); err != nil || event.Subtype(info.Result.Reason) != "error_cancelled" {
		t.Errorf("%v %+v", err, info.Result)
	}
}

// Whenever a chat client goes away, it leaves no run behind: also during the request for it.
func TestChatClientThatGoesAwayEarlyLeavesNoRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	defer openGate(t, gate)
	c := connectClient(t, h)
	body, err := json.Marshal(map[string]any{"model": "boss", "messages": []any{map[string]any{"role": "user", "content": "go"}},
		"troupe": client.RunRequest{Model: model, Agents: agents}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		ctx, leave := context.WithTimeout(testContext(t), time.Duration(i)*time.Millisecond/3)
		reply, err := w.http.Do(w.request("POST", "/v1/chat/completions", string(body)).WithContext(ctx))
		if err == nil {
			reply.Body.Close()
		}
		leave()
	}
	var list []client.RunInfo
	waitUntil(t, "the end of all runs", func() bool {
		list, err = c.List(testContext(t))
		return err == nil && !slices.ContainsFunc(list, func(r client.RunInfo) bool { return r.State != client.RunFinished })
	})
	if len(list) == 0 {
		t.Error("no request came far enough to begin a run")
	}
	for _, r := range list {
		if r.Result == nil || event.Subtype(r.Result.Reason) != "error_cancelled" {
			t.Errorf("%s: %+v", r.RunID, r.Result)
		}
	}
}
