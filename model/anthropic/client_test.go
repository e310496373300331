package anthropic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/dialect/messages"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
)

func TestConformance(t *testing.T) { wiretest.Run(t, messages.Dialect()) }

// exchangeWith sends a request to a server that answers with events, and returns
// what the server was sent.
func exchangeWith(t *testing.T, cfg anthropic.Config, req model.Request, events ...string) (model.Reply, map[string]any, http.Header) {
	t.Helper()
	var body map[string]any
	var header http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(data, &body); err != nil || r.URL.Path != "/v1/messages" {
			t.Errorf("%s %s: %v", r.URL.Path, data, err)
		}
		header = r.Header
		wiretest.Stream(events)(w, r)
	}))
	defer s.Close()
	cfg.BaseURL = s.URL
	c, err := anthropic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Complete(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got, body, header
}

// fullConversation holds everything a transcript can hold.
func fullConversation() []model.Message {
	issuer := "anthropic/m-1"
	return []model.Message{
		{Role: model.User, Text: "Hello?"},
		{Role: model.Assistant, Text: "lost", Tombstone: true},
		{Role: model.User, Text: "Still there?"},
		{Role: model.Assistant, Text: "I look.",
			Calls: []model.ToolCall{{ID: "3-0", Name: "read_file", Args: `{"path":"a.go"}`}, {ID: "3-1", Name: "a b/ü", Args: `{"path":"a`, Cut: true}},
			Opaque: []model.Opaque{
				{Issuer: "openai/m-1", Kind: "thinking", Data: []byte(`{"thinking":"not ours"}`)},
				{Issuer: "anthropic/m-0", Kind: "thinking", Data: []byte(`{"thinking":"older"}`)},
				{Issuer: issuer, Kind: "thinking", Data: []byte(`{"thinking":"Hm <&>","signature":"c2ln"}`)},
				{Issuer: issuer, Kind: "redacted_thinking", Data: []byte(`{"data":"ZGF0YQ=="}`)},
			}},
		{Role: model.ToolRole, Results: []model.ToolResult{{Call: "3-0", Text: "package a"}, {Call: "3-1", Text: "cut", Error: true}}},
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
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Env: from-the-environment")
	_, body, header := exchangeWith(t, anthropic.Config{APIKey: wiretest.Key, AuthToken: "unused", Cache: true}, req, messages.Dialect().Hello...)
	want := `{
		"model": "m-1", "max_tokens": 1000, "stream": true, "temperature": 0,
		"output_config": {"effort": "low"},
		"system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "Today is Monday."}],
		"tools": [{"name": "read_file", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}],
		"tool_choice": {"type": "none"},
		"messages": [
			{"role": "user", "content": [{"type": "text", "text": "Hello?"}, {"type": "text", "text": "Still there?", "cache_control": {"type": "ephemeral"}}]},
			{"role": "assistant", "content": [
				{"type": "thinking", "thinking": "Hm <&>", "signature": "c2ln"},
				{"type": "redacted_thinking", "data": "ZGF0YQ=="},
				{"type": "text", "text": "I look."},
				{"type": "tool_use", "id": "toolu_3_0", "name": "read_file", "input": {"path": "a.go"}},
				{"type": "tool_use", "id": "toolu_3_1", "name": "a_b__", "input": {"undecodable_arguments": "{\"path\":\"a"}}]},
			{"role": "user", "content": [
				{"type": "tool_result", "tool_use_id": "toolu_3_0", "content": [{"type": "text", "text": "package a"}]},
				{"type": "tool_result", "tool_use_id": "toolu_3_1", "is_error": true, "content": [{"type": "text", "text": "cut"}]},
				{"type": "text", "text": "Hurry."}, {"type": "text", "text": "Well?", "cache_control": {"type": "ephemeral"}}]}
		]}`
	var expected map[string]any
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, body); diff != "" {
		t.Error(diff)
	}
	if header.Get("X-Api-Key") != wiretest.Key || header.Get("Authorization") != "" || header.Get("X-Env") != "" || header.Get("Traceparent") != "" {
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
//
//behaviour:shows A24
func TestToolsCanBeForced(t *testing.T) {
	for _, c := range []struct {
		choice  string
		noTools bool
		want    any
	}{
		{"", false, nil}, {"any", false, map[string]any{"type": "any"}}, {"read_file", false, map[string]any{"type": "tool", "name": "read_file"}}, {"ask_human", false, nil}, {"any", true, map[string]any{"type": "none"}},
	} {
		req := wiretest.Request()
		req.Choice, req.NoTools = c.choice, c.noTools
		_, body, _ := exchangeWith(t, anthropic.Config{}, req, messages.Dialect().Hello...)
		if diff := cmp.Diff(c.want, body["tool_choice"]); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
		req.Tools = nil
		if _, body, _ := exchangeWith(t, anthropic.Config{}, req, messages.Dialect().Hello...); body["tool_choice"] != nil {
			t.Errorf("without tools: %v", body["tool_choice"])
		}
	}
	req := wiretest.Request()
	thought := model.Message{Role: model.Assistant, Text: "Hello.", Opaque: []model.Opaque{{Issuer: "anthropic/" + req.Model, Kind: "redacted_thinking", Data: []byte(`{"data":"x"}`)}}}
	req.Choice = "read_file"
	req.Messages = append(req.Messages, thought, model.Message{Role: model.User, Text: "Well?"})
	if _, body, _ := exchangeWith(t, anthropic.Config{}, req, messages.Dialect().Hello...); body["tool_choice"] != nil {
		t.Errorf("a model that thinks is forced: %v", body["tool_choice"])
	}
}

func TestSmallestRequest(t *testing.T) {
	req := model.Request{Model: "claude-haiku-4-5", MaxOutput: 5, NoTools: true, Effort: "high", Messages: []model.Message{{Role: model.User, Text: "a"}}}
	_, body, header := exchangeWith(t, anthropic.Config{AuthToken: "tok-123"}, req, messages.Dialect().Hello...)
	want := map[string]any{"model": "claude-haiku-4-5", "max_tokens": 5.0, "stream": true,
		"messages": []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "a"}}}}}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if header.Get("Authorization") != "Bearer tok-123" || header.Get("X-Api-Key") != "" {
		t.Errorf("headers %v", header)
	}
}

// TestThinkingGoesBackVerbatim: what came in between comes back in between, and
// only to its issuer.
//
//behaviour:shows A16
func TestThinkingGoesBackVerbatim(t *testing.T) {
	think := func(i int, s string) []string {
		return []string{messages.Begin(i, `{"type":"thinking","thinking":"","signature":""}`), messages.Delta(i, fmt.Sprintf(`{"type":"thinking_delta","thinking":%q}`, s)),
			messages.Delta(i, fmt.Sprintf(`{"type":"signature_delta","signature":"sig-%s"}`, s)), messages.End(i)}
	}
	events := append([]string{messages.Start(messages.Usage)}, think(0, "one")...)
	events = append(events, messages.Begin(1, messages.TextBlock), messages.Text(1, "I look."), messages.End(1), messages.Begin(2, messages.ToolBlock("read_file")), messages.Args(2, `{"path":"a"}`), messages.End(2))
	events = append(events, think(3, "two")...)
	events = append(events, messages.Begin(4, messages.ToolBlock("grep")), messages.End(4), messages.Begin(5, `{"type":"redacted_thinking","data":"xyz"}`), messages.End(5),
		messages.Begin(6, `{"type":"thinking","thinking":"unfinished"}`), messages.Finish("tool_use"), messages.Event("message_stop", ""))
	got, _, _ := exchangeWith(t, anthropic.Config{}, wiretest.Request(), events...)
	if got.Message.Calls[1].Args != "{}" {
		t.Errorf("a call without arguments: %+v", got.Message.Calls)
	}
	for i := range got.Message.Calls {
		got.Message.Calls[i].ID = fmt.Sprintf("1-%d", i)
	}
	req := wiretest.Request()
	req.Messages = append(req.Messages, got.Message, model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0"}, {Call: "1-1", Text: "b"}}})
	_, body, _ := exchangeWith(t, anthropic.Config{}, req, messages.Dialect().Hello...)
	if diff := cmp.Diff("thinking:one/sig-one text:I look. tool_use:toolu_1_0 thinking:two/sig-two tool_use:toolu_1_1 redacted_thinking:xyz", describeBlocks(body)); diff != "" {
		t.Error(diff)
	}
	req.Model = "m-2"
	_, body, _ = exchangeWith(t, anthropic.Config{}, req, messages.Dialect().Hello...)
	if diff := cmp.Diff("text:I look. tool_use:toolu_1_0 tool_use:toolu_1_1", describeBlocks(body)); diff != "" {
		t.Error(diff)
	}
}

// describeBlocks describes the blocks of the assistant message in a request.
func describeBlocks(body map[string]any) string {
	var out []string
	for _, b := range body["messages"].([]any)[1].(map[string]any)["content"].([]any) {
		m := b.(map[string]any)
		switch m["type"] {
		case "thinking":
			out = append(out, fmt.Sprintf("thinking:%v/%v", m["thinking"], m["signature"]))
		case "text":
			out = append(out, fmt.Sprintf("text:%v", m["text"]))
		case "tool_use":
			out = append(out, fmt.Sprintf("tool_use:%v", m["id"]))
		default:
			out = append(out, fmt.Sprintf("%v:%v", m["type"], m["data"]))
		}
	}
	return strings.Join(out, " ")
}

func TestReasoningIsEmitted(t *testing.T) {
	events := []string{messages.Start(messages.Usage), messages.Begin(0, `{"type":"thinking","thinking":""}`), messages.Delta(0, `{"type":"thinking_delta","thinking":"hm"}`), messages.End(0),
		messages.Begin(1, messages.TextBlock), messages.Text(1, "a"), messages.End(1), messages.Begin(2, messages.TextBlock), messages.Text(2, "b"), messages.End(2), messages.Finish("something_new"), messages.Event("message_stop", "")}
	s := httptest.NewServer(wiretest.Stream(events))
	defer s.Close()
	c, err := anthropic.New(anthropic.Config{BaseURL: s.URL + "/v1/"})
	if err != nil {
		t.Fatal(err)
	}
	var deltas []model.Delta
	got, err := c.Complete(t.Context(), wiretest.Request(), func(d model.Delta) { deltas = append(deltas, d) })
	if err != nil || got.Message.Text != "a\n\nb" || got.Stop != model.StopUnknown || len(got.Message.Opaque) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	want := []model.Delta{{Kind: model.ReasoningDelta, Text: "hm"}, {Kind: model.TextDelta, Text: "a"}, {Kind: model.TextDelta, Text: "b"}}
	if diff := cmp.Diff(want, deltas); diff != "" {
		t.Error(diff)
	}
}

func TestConfiguration(t *testing.T) {
	for _, bad := range []string{"localhost:8080", "ftp://h", "://", "http://"} {
		if _, err := anthropic.New(anthropic.Config{BaseURL: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	for _, key := range wiretest.BadKeys() {
		_, err := anthropic.New(anthropic.Config{APIKey: key})
		wiretest.CheckRefusedKey(t, key, err)
		_, err = anthropic.New(anthropic.Config{AuthToken: key})
		wiretest.CheckRefusedKey(t, key, err)
	}
	c, err := anthropic.New(anthropic.Config{APIKey: wiretest.Key})
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%v %+v %#v %s", c, c, c, c); strings.Contains(s, wiretest.Key) {
		t.Error("printing a client shows its key")
	}
}

// TestTheSchemaOfAnAnswer: a model is held to it if its API can keep it.
func TestTheSchemaOfAnAnswer(t *testing.T) {
	const fits = `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`
	for _, c := range []struct {
		model, schema, choice string
		sent                  bool
	}{
		{"claude-sonnet-5-5", fits, "", true}, {"claude-sonnet-5-5", fits, "any", false}, {"claude-sonnet-5-5", "", "", false},
		{"claude-sonnet-5-5", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`, "", false},
		{"claude-3-haiku", fits, "", false}, {"kimi-k3", fits, "", false},
	} {
		req := wiretest.Request()
		req.Model, req.Schema, req.Choice, req.Effort = c.model, c.schema, c.choice, "high"
		_, body, _ := exchangeWith(t, anthropic.Config{}, req, messages.Dialect().Hello...)
		config, _ := body["output_config"].(map[string]any)
		if format, ok := config["format"].(map[string]any); ok != c.sent {
			t.Errorf("%+v: %v", c, config)
		} else if c.sent && (format["type"] != "json_schema" || config["effort"] != "high" || fmt.Sprint(format["schema"]) != "map[additionalProperties:false properties:map[a:map[type:integer]] type:object]") {
			t.Errorf("%+v: %v", c, config)
		}
	}
}

// TestThoughtsOfAnotherBeginningAreLeftOut: newer models sign what stands before
// a thought, too, and refuse it where that has changed: the journal in the system
// prompt, a compaction. They are asked to overlook it, by who can be.
func TestThoughtsOfAnotherBeginningAreLeftOut(t *testing.T) {
	const beta = "thinking-binding-controls-2026-08-01"
	want := map[string]any{"type": "adaptive", "block_binding": map[string]any{"prefix_mismatch_behavior": "drop_block"}}
	for _, c := range []struct {
		model string
		drop  bool
		want  any
		beta  string
	}{
		{"claude-sonnet-5-5", true, want, beta}, {"claude-opus-5-5", true, want, beta}, {"claude-haiku-5-5", true, want, beta}, {"claude-fable-5-1", true, want, beta},
		{"claude-sonnet-5-5", false, nil, ""}, {"claude-sonnet-5", true, nil, ""}, {"claude-opus-5", true, nil, ""}, {"claude-haiku-4-5", true, nil, ""}, {"kimi-k3", true, nil, ""},
	} {
		req := wiretest.Request()
		req.Model = c.model
		_, body, header := exchangeWith(t, anthropic.Config{DropStale: c.drop}, req, messages.Dialect().Hello...)
		if diff := cmp.Diff(c.want, body["thinking"]); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
		if header.Get("Anthropic-Beta") != c.beta {
			t.Errorf("%+v: the beta header is %q", c, header.Get("Anthropic-Beta"))
		}
	}
}

// TestParametersThatAModelFamilyRejectsAreNotSent: newer models take no temperature, and some of
// them no forced tool even before they have thought.
func TestParametersThatAModelFamilyRejectsAreNotSent(t *testing.T) {
	for _, c := range []struct {
		model        string
		heat, forced bool
	}{
		{"claude-fable-5-1", false, false}, {"claude-opus-5-5", false, false}, {"claude-sonnet-5-5", false, false}, {"claude-haiku-5-5", false, true},
		{"claude-opus-5", false, true}, {"claude-sonnet-5", false, true}, {"claude-fable-5", false, true}, {"claude-opus-4-8", false, true}, {"claude-opus-4-7", false, true},
		{"claude-of-tomorrow", false, true}, {"claude-opus-4-6", true, true}, {"claude-sonnet-4-6", true, true}, {"claude-haiku-4-5-20251001", true, true},
		{"claude-opus-4-20250514", true, true}, {"claude-3-7-sonnet-20250219", true, true}, {"kimi-k3", true, true},
	} {
		req := wiretest.Request()
		half := 0.5
		req.Model, req.Choice, req.Temperature = c.model, model.ChoiceAny, &half
		_, body, _ := exchangeWith(t, anthropic.Config{}, req, messages.Dialect().Hello...)
		if (body["temperature"] != nil) != c.heat || (body["tool_choice"] != nil) != c.forced {
			t.Errorf("%+v: %v %v", c, body["temperature"], body["tool_choice"])
		}
	}
}
