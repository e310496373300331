package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	wiretest.Run(t, chat.Dialect())
}

// completeWith sends a request to a server that answers with events, and returns
// what the server was sent.
func completeWith(t *testing.T, cfg openai.Config, req model.Request, events ...string) (model.Reply, map[string]any, http.Header) {
	t.Helper()
	return askPath(t, "/v1/chat/completions", cfg, req, events...)
}

func askPath(t *testing.T, path string, cfg openai.Config, req model.Request, events ...string) (model.Reply, map[string]any, http.Header) {
	t.Helper()
	var body map[string]any
	var header http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(data, &body); err != nil || r.URL.Path != path {
			t.Errorf("%s %s: %v", r.URL.Path, data, err)
		}
		header = r.Header
		wiretest.Stream(events)(w, r)
	}))
	defer s.Close()
	cfg.BaseURL = s.URL + "/v1"
	c, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Complete(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got, body, header
}

func fullConversation() []model.Message {
	return []model.Message{
		{Role: model.User, Text: "Hello?"},
		{Role: model.Assistant, Text: "lost", Tombstone: true},
		{Role: model.User, Text: "Still there?"},
		{Role: model.Assistant, Text: "I look.",
			Calls:  []model.ToolCall{{ID: "3-0", Name: "read_file", Args: `{"path":"a.go"}`}, {ID: "3-1", Name: "", Args: `{"path":"a`, Cut: true}},
			Opaque: []model.Opaque{{Issuer: "anthropic/m-1", Kind: "thinking", Data: []byte(`{"thinking":"hm"}`)}}},
		{Role: model.ToolRole, Results: []model.ToolResult{{Call: "3-0", Text: "package a"}, {Call: "3-1", Text: "cut off", Error: true}}},
		{Role: model.User, Text: "Hurry."},
		{Role: model.Assistant, Text: "  "},
		{Role: model.User, Text: "Well?"},
	}
}

func TestRequestOnTheWire(t *testing.T) {
	req := wiretest.Request()
	req.Messages, req.NoTools, req.Effort, req.Dynamic = fullConversation(), true, "low", "Today is Monday."
	zero := 0.0
	req.Temperature = &zero
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_ORG_ID", "from-the-environment")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Env: from-the-environment")
	_, body, header := completeWith(t, openai.Config{APIKey: wiretest.Key}, req, chat.Dialect().Hello...)
	want := `{
		"model": "m-1", "max_completion_tokens": 1000, "stream": true, "stream_options": {"include_usage": true},
		"temperature": 0, "reasoning_effort": "low", "tool_choice": "none",
		"tools": [{"type": "function", "function": {"name": "read_file", "description": "Reads a file.",
			"parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}],
		"messages": [
			{"role": "system", "content": "Be brief.\n\nToday is Monday."},
			{"role": "user", "content": "Hello?\n\nStill there?"},
			{"role": "assistant", "content": "I look.", "tool_calls": [
				{"id": "call_3_0", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a.go\"}"}},
				{"id": "call_3_1", "type": "function", "function": {"name": "_", "arguments": "{\"undecodable_arguments\":\"{\\\"path\\\":\\\"a\"}"}}]},
			{"role": "tool", "tool_call_id": "call_3_0", "content": "package a"},
			{"role": "tool", "tool_call_id": "call_3_1", "content": "error: cut off"},
			{"role": "user", "content": "Hurry.\n\nWell?"}
		]}`
	var expected map[string]any
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, body); diff != "" {
		t.Error(diff)
	}
	if header.Get("Authorization") != "Bearer "+wiretest.Key {
		t.Errorf("headers %v", header)
	}
	for _, values := range header {
		if strings.Contains(strings.Join(values, " "), "from-the-environment") {
			t.Errorf("headers %v", header)
		}
	}
}

// TestToolsCanBeForced: any, one of them, none before all; what is not offered
// forces nothing (A24).
func TestToolsCanBeForced(t *testing.T) {
	for _, c := range []struct {
		choice  string
		noTools bool
		want    any
	}{
		{"", false, nil}, {"any", false, "required"}, {"read_file", false, map[string]any{"type": "function", "function": map[string]any{"name": "read_file"}}}, {"ask_human", false, nil}, {"any", true, "none"},
	} {
		req := wiretest.Request()
		req.Choice, req.NoTools = c.choice, c.noTools
		_, body, _ := completeWith(t, openai.Config{}, req, chat.Dialect().Hello...)
		if diff := cmp.Diff(c.want, body["tool_choice"]); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
		req.Tools = nil
		if _, body, _ := completeWith(t, openai.Config{}, req, chat.Dialect().Hello...); body["tool_choice"] != nil {
			t.Errorf("without tools: %v", body["tool_choice"])
		}
	}
}

func TestSmallestRequest(t *testing.T) {
	req := model.Request{Model: "gpt-4.1", MaxOutput: 5, NoTools: true, Effort: "high", Messages: []model.Message{{Role: model.User, Text: "a"}}}
	_, body, header := completeWith(t, openai.Config{MaxTokens: true}, req, chat.Dialect().Hello...)
	want := map[string]any{"model": "gpt-4.1", "max_tokens": 5.0, "stream": true, "stream_options": map[string]any{"include_usage": true},
		"messages": []any{map[string]any{"role": "user", "content": "a"}}}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if _, ok := header["Authorization"]; ok {
		t.Errorf("headers %v", header)
	}
}

func TestEffortIsWhatTheModelTakes(t *testing.T) {
	for _, c := range []struct {
		model, asked string
		tools        bool
		want         any
	}{
		{"gpt-6-sol", "low", true, "none"}, {"gpt-6-sol", "", true, "none"}, {"gpt-6-sol", "low", false, "low"}, {"openai/gpt-5.6-terra", "", true, "none"},
		{"gpt-5.4-mini", "low", true, nil}, {"gpt-5.4-mini", "low", false, "low"}, {"gpt-4.1", "low", false, nil},
		{"gpt-5-mini", "low", true, "low"}, {"gpt-6.1-sol", "high", true, "high"}, {"qwen3", "high", true, "high"}, {"qwen3", "", true, nil},
	} {
		req := wiretest.Request()
		req.Model, req.Effort = c.model, c.asked
		if !c.tools {
			req.Tools = nil
		}
		if _, body, _ := completeWith(t, openai.Config{}, req, chat.Dialect().Hello...); body["reasoning_effort"] != c.want {
			t.Errorf("%+v: %v", c, body["reasoning_effort"])
		}
	}
}

// TestCompatibleServers: they stream calls in many ways.
func TestCompatibleServers(t *testing.T) {
	a, b := model.ToolCall{Name: "a", Args: `{"x":1}`}, model.ToolCall{Name: "b", Args: `{}`}
	whole := func(pieces ...string) []string { return append(pieces, chat.Chunk("{}", "tool_calls"), chat.Done) }
	for name, c := range map[string]struct {
		events []string
		want   []model.ToolCall
	}{
		"all at index 0, with ids":       {whole(chat.Call(0, "1", "a", `{"x":1}`), chat.Call(0, "2", "b", `{}`)), []model.ToolCall{a, b}},
		"all at index 0, pieces by id":   {whole(chat.Call(0, "1", "a", `{"x"`), chat.Call(0, "2", "b", `{`), chat.Call(0, "1", "", `:1}`), chat.Call(0, "2", "", `}`)), []model.ToolCall{a, b}},
		"all at index 0, no ids":         {whole(chat.Call(0, "", "a", `{"x":1}`), chat.Call(0, "", "b", `{}`)), []model.ToolCall{a, b}},
		"name and id with every piece":   {whole(chat.Call(0, "1", "a", `{"x`), chat.Call(0, "1", "a", `":1}`)), []model.ToolCall{a}},
		"the same id twice":              {whole(chat.Call(0, "1", "a", `{"x":1}`), chat.Call(1, "1", "b", `{}`)), []model.ToolCall{a, b}},
		"two in one chunk":               {whole(chat.Chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"a","arguments":"{\"x\":1}"}},{"index":1,"id":"2","function":{"name":"b","arguments":"{}"}}]}`, "")), []model.ToolCall{a, b}},
		"no arguments":                   {whole(chat.Call(0, "1", "b", ``)), []model.ToolCall{b}},
		"null arguments":                 {whole(chat.Chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"b","arguments":null}}]}`, "")), []model.ToolCall{b}},
		"broken arguments, marked whole": {whole(chat.Call(0, "1", "a", `{"x":`)), []model.ToolCall{{Name: "a", Args: `{"x":`}}},
		"no reason, only the last line":  {[]string{chat.Call(0, "1", "a", `{"x":1}`), "data:[DONE]\n\n"}, []model.ToolCall{a}},
		"labelled stop":                  {[]string{chat.Call(0, "1", "a", `{"x":1}`), chat.Chunk("{}", "stop"), chat.Done}, []model.ToolCall{a}},
		"labelled calls, holding none":   {[]string{chat.Text("a"), chat.Chunk("{}", "tool_calls"), chat.Done}, nil},
	} {
		got, _, _ := completeWith(t, openai.Config{}, wiretest.Request(), c.events...)
		if diff := cmp.Diff(c.want, got.Message.Calls); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestReasoningIsEmitted(t *testing.T) {
	for _, field := range []string{"reasoning", "reasoning_content"} {
		s := httptest.NewServer(wiretest.Stream([]string{chat.Chunk(fmt.Sprintf(`{"content":"",%q:"hm"}`, field), ""), chat.Text("a"), chat.Chunk("{}", "stop"), chat.Usage, chat.Done}))
		c, err := openai.New(openai.Config{BaseURL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		var deltas []model.Delta
		got, err := c.Complete(t.Context(), wiretest.Request(), func(d model.Delta) { deltas = append(deltas, d) })
		s.Close()
		if err != nil || got.Message.Text != "a" {
			t.Errorf("%+v, %v", got, err)
		}
		if diff := cmp.Diff([]model.Delta{{Kind: model.ReasoningDelta, Text: "hm"}, {Kind: model.TextDelta, Text: "a"}}, deltas); diff != "" {
			t.Error(diff)
		}
	}
}

func TestConfiguration(t *testing.T) {
	for _, bad := range []string{"localhost:8080", "ftp://h", "://", "http://"} {
		if _, err := openai.New(openai.Config{BaseURL: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	for _, key := range wiretest.BadKeys() {
		_, err := openai.New(openai.Config{APIKey: key})
		wiretest.CheckRefusedKey(t, key, err)
	}
	c, err := openai.New(openai.Config{APIKey: wiretest.Key})
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%v %+v %#v %s", c, c, c, c); strings.Contains(s, wiretest.Key) {
		t.Error("printing a client shows its key")
	}
}
