package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
)

//behaviour:shows A15
func TestResponsesConformance(t *testing.T) {
	t.Parallel()
	wiretest.Run(t, responses.Dialect())
}

// respondWith sends a request by the Responses API to a server that answers with
// events, and returns what the server was sent.
func respondWith(t *testing.T, cfg openai.Config, req model.Request, events ...string) (model.Reply, map[string]any) {
	t.Helper()
	cfg.API = openai.APIResponses
	reply, body, header := askPath(t, "/v1/responses", cfg, req, events...)
	if cfg.APIKey != "" && header.Get("Authorization") != "Bearer "+cfg.APIKey {
		t.Errorf("headers %v", header)
	}
	for _, values := range header {
		if strings.Contains(strings.Join(values, " "), "from-the-environment") {
			t.Errorf("headers %v", header)
		}
	}
	return reply, body
}

func jsonObject(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestResponsesRequestOnTheWire(t *testing.T) {
	req := wiretest.Request()
	req.Messages, req.NoTools, req.Effort, req.Dynamic = fullConversation(), true, "low", "Today is Monday."
	zero := 0.0
	req.Temperature = &zero
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_ORG_ID", "from-the-environment")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Env: from-the-environment")
	_, body := respondWith(t, openai.Config{APIKey: wiretest.Key}, req, responses.Dialect().Hello...)
	want := jsonObject(t, `{
		"model": "m-1", "max_output_tokens": 1000, "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
		"temperature": 0, "reasoning": {"effort": "low"}, "tool_choice": "none", "instructions": "Be brief.\n\nToday is Monday.",
		"tools": [{"type": "function", "name": "read_file", "description": "Reads a file.", "strict": false,
			"parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}],
		"input": [
			{"role": "user", "content": "Hello?\n\nStill there?"},
			{"role": "assistant", "content": "I look."},
			{"type": "function_call", "call_id": "call_3_0", "name": "read_file", "arguments": "{\"path\":\"a.go\"}"},
			{"type": "function_call", "call_id": "call_3_1", "name": "_", "arguments": "{\"undecodable_arguments\":\"{\\\"path\\\":\\\"a\"}"},
			{"type": "function_call_output", "call_id": "call_3_0", "output": "package a"},
			{"type": "function_call_output", "call_id": "call_3_1", "output": "error: cut off"},
			{"role": "user", "content": "Hurry.\n\nWell?"}
		]}`)
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
}

// TestSmallestResponsesRequest: a model that does not reason is not asked for
// what it thinks, which it would refuse.
func TestSmallestResponsesRequest(t *testing.T) {
	for _, name := range []string{"gpt-4.1", "ft:gpt-4o:acme::1"} {
		req := model.Request{Model: name, MaxOutput: 5, NoTools: true, Effort: "high", Messages: []model.Message{{Role: model.User, Text: "a"}}}
		_, body := respondWith(t, openai.Config{}, req, responses.Dialect().Hello...)
		want := jsonObject(t, `{"max_output_tokens": 5, "stream": true, "store": false, "input": [{"role": "user", "content": "a"}]}`)
		want["model"] = name
		if diff := cmp.Diff(want, body); diff != "" {
			t.Error(diff)
		}
	}
}

func TestToolsCanBeForcedInResponses(t *testing.T) {
	for _, c := range []struct {
		choice  string
		noTools bool
		want    any
	}{
		{"", false, nil}, {"any", false, "required"}, {"read_file", false, map[string]any{"type": "function", "name": "read_file"}},
		{"ask_human", false, nil}, {"any", true, "none"},
	} {
		req := wiretest.Request()
		req.Choice, req.NoTools = c.choice, c.noTools
		if _, body := respondWith(t, openai.Config{}, req, responses.Dialect().Hello...); cmp.Diff(c.want, body["tool_choice"]) != "" {
			t.Errorf("%+v: %v", c, body["tool_choice"])
		}
		req.Tools = nil
		if _, body := respondWith(t, openai.Config{}, req, responses.Dialect().Hello...); body["tool_choice"] != nil || body["tools"] != nil {
			t.Errorf("without tools: %v", body)
		}
	}
}

// TestReasoningItemsGoBackVerbatim: what a model thought goes back to it where
// it stood, encrypted as it came, with the phase of each message; to another
// model or provider nothing of it goes (A16).
//
//behaviour:shows A16
func TestReasoningItemsGoBackVerbatim(t *testing.T) {
	events := []string{responses.State("created", ""),
		responses.Done(0, responses.Thought("rs_1", "gAAA<&>+/==", "I think")), responses.Added(1, responses.EmptyMessage), responses.Text(1, "First."), responses.Done(1, responses.Message("First.", "commentary")),
		responses.Event("response.reasoning_summary_text.delta", `"output_index":2,"delta":"hm"`), responses.Done(2, responses.Thought("rs_2", "gBBB", "")),
		responses.Done(3, responses.Call("read_file", `{"path":"a.go"}`, "completed")), responses.Done(4, responses.Message("Then.", "final_answer")),
		responses.Done(5, responses.Thought("rs_3", "leads to nothing", "")), responses.Done(6, `{"id":"rs_4","type":"reasoning","summary":[]}`), responses.State("completed", responses.Usage)}
	req := wiretest.Request()
	req.Model = "gpt-6-sol"
	got, _ := respondWith(t, openai.Config{}, req, events...)
	if got.Message.Text != "First.\n\nThen." || len(got.Message.Calls) != 1 || got.Stop != model.StopTools {
		t.Fatalf("%+v", got)
	}
	got.Message.Calls[0].ID = "1-0"
	result := model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0", Text: "package a"}}}
	back := func(name string, m model.Message) []any {
		again := req
		again.Model, again.Messages = name, append(req.Messages[:1:1], m, result)
		_, body := respondWith(t, openai.Config{}, again, responses.Dialect().Hello...)
		return body["input"].([]any)
	}
	list := func(text string) []any { return jsonObject(t, `{"l":`+text+`}`)["l"].([]any) }
	call := `{"type": "function_call", "call_id": "call_1_0", "name": "read_file", "arguments": "{\"path\":\"a.go\"}"}`
	output := `{"type": "function_call_output", "call_id": "call_1_0", "output": "package a"}`
	want := list(`[{"role": "user", "content": "Hello?"},
		{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I think"}], "encrypted_content": "gAAA<&>+/=="},
		{"role": "assistant", "content": "First.", "phase": "commentary"},
		{"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": ""}], "encrypted_content": "gBBB"},
		` + call + `, {"role": "assistant", "content": "Then.", "phase": "final_answer"}, ` + output + `]`)
	if diff := cmp.Diff(want, back("gpt-6-sol", got.Message)); diff != "" {
		t.Error(diff)
	}
	plain := list(`[{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "First.\n\nThen."}, ` + call + `, ` + output + `]`)
	if diff := cmp.Diff(plain, back("gpt-6-astra", got.Message)); diff != "" {
		t.Error(diff)
	}
	changed := got.Message
	changed.Text = "First.\n\nThen?!"
	plain[1].(map[string]any)["content"] = changed.Text
	if diff := cmp.Diff(plain, back("gpt-6-sol", changed)); diff != "" {
		t.Error(diff)
	}
	again := req
	again.Messages = append(req.Messages[:1:1], got.Message, result)
	if _, body, _ := completeWith(t, openai.Config{}, again, chat.Dialect().Hello...); strings.Contains(fmt.Sprint(body), "gAAA") {
		t.Errorf("in Chat Completions: %v", body)
	}
}

// TestServersOfResponses: they stream less, or otherwise, than OpenAI does.
func TestServersOfResponses(t *testing.T) {
	a, b := model.ToolCall{Name: "a", Args: `{"x":1}`}, model.ToolCall{Name: "b", Args: `{}`}
	for name, c := range map[string]struct {
		events []string
		text   string
		calls  []model.ToolCall
		stop   model.Stop
	}{
		"only whole items":        {[]string{responses.Done(0, responses.Message("hi", "")), responses.Done(1, responses.Call("a", `{"x":1}`, "completed")), responses.State("completed", "")}, "hi", []model.ToolCall{a}, model.StopTools},
		"only the end":            {[]string{responses.State("completed", `,"output":[`+responses.Message("hi", "")+`,`+responses.Call("b", "", "completed")+`]`)}, "hi", []model.ToolCall{b}, model.StopTools},
		"no item was begun":       {[]string{responses.Text(0, "h"), responses.Text(0, "i"), responses.State("completed", "")}, "hi", nil, model.StopEnd},
		"all at index 0":          {[]string{responses.Added(0, responses.Call("a", "", "")), responses.Args(0, `{"x":1}`), responses.Done(0, responses.Call("a", `{"x":1}`, "")), responses.Added(0, responses.Call("b", "", "")), responses.Args(0, `{}`), responses.Done(0, responses.Call("b", `{}`, "")), responses.State("completed", "")}, "", []model.ToolCall{a, b}, model.StopTools},
		"begun twice":             {[]string{responses.Added(0, responses.Call("a", "", "")), responses.Added(0, responses.Call("a", "", "")), responses.Args(0, `{"x":1}`), responses.State("completed", "")}, "", []model.ToolCall{a}, model.StopTools},
		"only the last line":      {[]string{responses.Text(0, "hi"), "data: [DONE]\n\n"}, "hi", nil, model.StopEnd},
		"events of no use":        {[]string{responses.Event("response.queued", ""), responses.Event("response.content_part.added", `"part":{}`), responses.Event("keepalive", ""), responses.Event("response.new", `"delta":{"a":1},"item":{"type":"other"}`), responses.Text(0, "hi"), responses.State("completed", "")}, "hi", nil, model.StopEnd},
		"arguments are an object": {[]string{responses.Done(0, `{"type":"function_call","name":"a","arguments":{"x":1}}`), responses.State("completed", "")}, "", []model.ToolCall{a}, model.StopTools},
		"filtered":                {[]string{responses.Text(0, "hi"), responses.State("incomplete", `,"incomplete_details":{"reason":"content_filter"}`)}, "hi", nil, model.StopRefusal},
		"cut, nobody says why":    {[]string{responses.Text(0, "hi"), responses.Event("response.completed", `"response":{"status":"incomplete"}`)}, "hi", nil, model.StopMaxOutput},
		"cut for another reason":  {[]string{responses.Text(0, "hi"), responses.State("incomplete", `,"incomplete_details":{"reason":"steered"}`)}, "hi", nil, model.StopUnknown},
	} {
		got, _ := respondWith(t, openai.Config{}, wiretest.Request(), c.events...)
		if diff := cmp.Diff(c.calls, got.Message.Calls); diff != "" || got.Message.Text != c.text || got.Stop != c.stop {
			t.Errorf("%s: %+v %s", name, got, diff)
		}
	}
}

// TestErrorsInAResponse: in whatever form they come, they get their class.
func TestErrorsInAResponse(t *testing.T) {
	for name, c := range map[string]struct {
		event string
		want  model.ErrorClass
		usage bool
	}{
		"failed":        {responses.State("failed", `,"error":{"code":"rate_limit_exceeded","message":"slow down"}`), model.RateLimit, false},
		"counted":       {responses.State("failed", `,"error":{"code":"server_error","message":"oops"}`+responses.Usage), model.Overload, true},
		"against rules": {responses.State("failed", `,"error":{"code":"invalid_prompt","message":"no"}`), model.Refused, false},
		"no error":      {responses.State("failed", ""), model.UnknownClass, false},
		"flat":          {responses.Event("error", `"code":"server_error","message":"oops","param":null`), model.Overload, false},
		"nested":        {responses.Event("error", `"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`), model.TooLong, false},
	} {
		s := httptest.NewServer(wiretest.Stream([]string{responses.State("created", ""), responses.Text(0, "a"), c.event}))
		client, err := openai.New(openai.Config{BaseURL: s.URL, API: openai.APIResponses})
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Complete(t.Context(), wiretest.Request(), nil)
		s.Close()
		e, ok := err.(*model.Error)
		if !ok || e.Class != c.want || e.Unbilled || got.UsageKnown != c.usage || got.Message.Text != "a" {
			t.Errorf("%s: %+v, %+v", name, err, got)
		}
	}
}

// TestDefaultAPIOfABaseURL: OpenAI's own address gets Responses, another Chat Completions,
// unless it is named.
func TestDefaultAPIOfABaseURL(t *testing.T) {
	for _, c := range []struct {
		base string
		api  openai.API
		want openai.API
	}{
		{"", "", openai.APIResponses}, {"https://API.openai.com/v1/", "", openai.APIResponses}, {"", openai.APIChat, openai.APIChat},
		{"http://127.0.0.1:1/v1", "", openai.APIChat}, {"http://127.0.0.1:1/v1", openai.APIResponses, openai.APIResponses},
	} {
		client, err := openai.New(openai.Config{BaseURL: c.base, API: c.api})
		if err != nil || client.API() != c.want {
			t.Errorf("%+v: %v, %v", c, client.API(), err)
		}
	}
	if _, err := openai.New(openai.Config{API: "soap"}); err == nil || !strings.Contains(err.Error(), `"responses"`) {
		t.Error(err)
	}
}

// TestTheSchemaOfAnAnswer: OpenAI holds its models to one of the subset that it
// takes, and tells them another; other servers get none, or only where no tool
// can be called.
func TestTheSchemaOfAnAnswer(t *testing.T) {
	const fits, free = `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["b","a"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"integer","minimum":3}}}`
	for _, c := range []struct {
		structured      openai.Structured
		schema          string
		alone           bool
		choice          string
		noTools, strict bool
		sent            bool
	}{
		{openai.StructuredAlways, fits, false, "", false, true, true}, {openai.StructuredAlways, free, false, "", false, false, true},
		{openai.StructuredAlways, "", false, "", false, false, false}, {openai.StructuredAlways, fits, false, "any", false, false, false},
		{openai.StructuredAlone, fits, false, "", false, true, false}, {openai.StructuredAlone, fits, true, "", false, true, true},
		{openai.StructuredAlone, fits, false, "", true, true, true}, {"", fits, true, "", false, true, false},
		{openai.StructuredNever, fits, true, "", false, true, false},
		{openai.StructuredAlways, `{"type":"array","items":{"type":"string"}}`, false, "", false, false, false},
	} {
		req := wiretest.Request()
		req.Schema, req.Choice, req.NoTools = c.schema, c.choice, c.noTools
		if c.alone {
			req.Tools = nil
		}
		cfg := openai.Config{Structured: c.structured}
		var inChat, inResponses any
		if c.sent {
			s := jsonObject(t, c.schema)
			inChat = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "schema": s, "strict": c.strict}}
			inResponses = map[string]any{"format": map[string]any{"type": "json_schema", "name": "answer", "schema": s, "strict": c.strict}}
		}
		_, body, _ := completeWith(t, cfg, req, chat.Dialect().Hello...)
		if diff := cmp.Diff(inChat, body["response_format"]); diff != "" {
			t.Errorf("chat, %+v: %s", c, diff)
		}
		if _, body = respondWith(t, cfg, req, responses.Dialect().Hello...); cmp.Diff(inResponses, body["text"]) != "" {
			t.Errorf("responses, %+v: %v", c, body["text"])
		}
	}
}
