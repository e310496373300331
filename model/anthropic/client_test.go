package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/test/conformance"
	"github.com/troupe-run/troupe/test/sdktypes"
	"github.com/troupe-run/troupe/test/wiretest"
)

// streamEvent renders one event of the Messages API.
func streamEvent(kind, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest)
}

func beginEvent(i int, block string) string {
	return streamEvent("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, i, block))
}

func deltaEvent(i int, d string) string {
	return streamEvent("content_block_delta", fmt.Sprintf(`"index":%d,"delta":%s`, i, d))
}

func textEvent(i int, s string) string {
	return deltaEvent(i, fmt.Sprintf(`{"type":"text_delta","text":%q}`, s))
}

func argsEvent(i int, s string) string {
	return deltaEvent(i, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, s))
}

func endEvent(i int) string { return streamEvent("content_block_stop", fmt.Sprintf(`"index":%d`, i)) }

func finishEvent(reason string) string {
	return streamEvent("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":15}`, reason))
}

const startUsage = `,"usage":{"input_tokens":25,"cache_read_input_tokens":7,"cache_creation_input_tokens":3,"output_tokens":1}`

func startEvent(usage string) string {
	return streamEvent("message_start", `"message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1-served","content":[],"stop_reason":null`+usage+`}`)
}

const textBlock = `{"type":"text","text":""}`

func toolBlock(name string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":"toolu_x%s","name":%q,"input":{}}`, name, name)
}

func wireDialect() wiretest.Dialect {
	ping, stop := streamEvent("ping", ""), streamEvent("message_stop", "")
	hello := []string{beginEvent(0, textBlock), ping, textEvent(0, "Hello, "), textEvent(0, "wörld"), endEvent(0)}
	open := []string{startEvent(startUsage), beginEvent(0, textBlock), textEvent(0, "I look."), endEvent(0), beginEvent(1, toolBlock("read_file")), argsEvent(1, ""), argsEvent(1, `{"pa`)}
	calls := append(open, beginEvent(2, toolBlock("grep")), argsEvent(2, `{"pattern":"x y"`), argsEvent(1, `th":"a.go"}`))
	marked := append(append([]string{}, calls...), endEvent(1), argsEvent(2, `,"glob":"*.go"}`), endEvent(2), finishEvent("tool_use"), stop)
	return wiretest.Dialect{
		New: func(root string, t modelhttp.Timeouts) (model.Client, error) {
			return anthropic.New(anthropic.Config{BaseURL: root, APIKey: wiretest.Key, Timeouts: t})
		},
		Hello:      append(append([]string{startEvent(startUsage)}, hello...), finishEvent("end_turn"), stop),
		HelloUsage: model.Usage{Input: 25, Output: 15, CacheRead: 7, CacheCreation: 3},
		NoUsage:    append(append([]string{startEvent("")}, hello...), streamEvent("message_delta", `"delta":{"stop_reason":"end_turn"}`), stop),
		Calls:      marked,
		NoMarks:    append(append([]string{}, calls...), argsEvent(2, `,"glob":"*.go"}`)),
		Limit:      append(append([]string{}, open...), argsEvent(1, `th":"a`), endEvent(1), finishEvent("max_tokens"), stop),
		Refusal:    []string{startEvent(startUsage), finishEvent("refusal"), stop},
		Overload:   []string{startEvent(startUsage), beginEvent(0, textBlock), textEvent(0, "Hello, "), streamEvent("error", `"error":{"type":"overloaded_error","message":"busy"}`)},
		ErrorBody: func(kind, message string) string {
			m, _ := json.Marshal(message)
			return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_1"}`, kind, m)
		},
		Thinking: []string{startEvent(startUsage), beginEvent(0, `{"type":"thinking","thinking":"","signature":""}`), deltaEvent(0, `{"type":"thinking_delta","thinking":"hm"}`),
			deltaEvent(0, `{"type":"signature_delta","signature":"sig"}`), endEvent(0), beginEvent(1, textBlock), textEvent(1, "I look."), endEvent(1),
			beginEvent(2, `{"type":"redacted_thinking","data":"xyz"}`), endEvent(2), beginEvent(3, toolBlock("read_file")), argsEvent(3, `{"path":"a.go"}`), endEvent(3), finishEvent("tool_use"), stop},
		ErrorEvent: func(kind, message string) string {
			return streamEvent("error", fmt.Sprintf(`"error":{"type":%q,"message":%q}`, kind, message))
		},
		Judge:      checkRequest,
		TooLong:    `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`,
		BadRequest: `{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate"}}`,
	}
}

// checkRequest: a request is one that the SDK's types know, and that breaks no rule.
func checkRequest(body []byte) error {
	issuer := func(string) string { return "m-1" }
	return errors.Join(sdktypes.CheckShape(body, reflect.TypeFor[sdk.MessageNewParams](), "stream"), conformance.Anthropic(body, issuer))
}

// checkTypes: a request is one that the types of the SDK know: those of what is still
// tried where it says so.
func checkTypes(body []byte, header http.Header) error {
	if header.Get("Anthropic-Beta") == "" {
		return sdktypes.CheckShape(body, reflect.TypeFor[sdk.MessageNewParams](), "stream")
	}
	return sdktypes.CheckShape(body, reflect.TypeFor[sdk.BetaMessageNewParams](), "stream")
}

func TestConformance(t *testing.T) { wiretest.Run(t, wireDialect()) }

// exchangeWith sends a request to a server that answers with events, and returns
// what the server was sent.
func exchangeWith(t *testing.T, cfg anthropic.Config, req model.Request, events ...string) (model.Reply, map[string]any, http.Header) {
	t.Helper()
	var body map[string]any
	var header http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if err := checkTypes(data, r.Header); err != nil {
			t.Error(err)
		}
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
	_, body, header := exchangeWith(t, anthropic.Config{APIKey: wiretest.Key, AuthToken: "unused", Cache: true}, req, wireDialect().Hello...)
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
		_, body, _ := exchangeWith(t, anthropic.Config{}, req, wireDialect().Hello...)
		if diff := cmp.Diff(c.want, body["tool_choice"]); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
		req.Tools = nil
		if _, body, _ := exchangeWith(t, anthropic.Config{}, req, wireDialect().Hello...); body["tool_choice"] != nil {
			t.Errorf("without tools: %v", body["tool_choice"])
		}
	}
	req := wiretest.Request()
	thought := model.Message{Role: model.Assistant, Text: "Hello.", Opaque: []model.Opaque{{Issuer: "anthropic/" + req.Model, Kind: "redacted_thinking", Data: []byte(`{"data":"x"}`)}}}
	req.Choice = "read_file"
	req.Messages = append(req.Messages, thought, model.Message{Role: model.User, Text: "Well?"})
	if _, body, _ := exchangeWith(t, anthropic.Config{}, req, wireDialect().Hello...); body["tool_choice"] != nil {
		t.Errorf("a model that thinks is forced: %v", body["tool_choice"])
	}
}

func TestSmallestRequest(t *testing.T) {
	req := model.Request{Model: "claude-haiku-4-5", MaxOutput: 5, NoTools: true, Effort: "high", Messages: []model.Message{{Role: model.User, Text: "a"}}}
	_, body, header := exchangeWith(t, anthropic.Config{AuthToken: "tok-123"}, req, wireDialect().Hello...)
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
		return []string{beginEvent(i, `{"type":"thinking","thinking":"","signature":""}`), deltaEvent(i, fmt.Sprintf(`{"type":"thinking_delta","thinking":%q}`, s)),
			deltaEvent(i, fmt.Sprintf(`{"type":"signature_delta","signature":"sig-%s"}`, s)), endEvent(i)}
	}
	events := append([]string{startEvent(startUsage)}, think(0, "one")...)
	events = append(events, beginEvent(1, textBlock), textEvent(1, "I look."), endEvent(1), beginEvent(2, toolBlock("read_file")), argsEvent(2, `{"path":"a"}`), endEvent(2))
	events = append(events, think(3, "two")...)
	events = append(events, beginEvent(4, toolBlock("grep")), endEvent(4), beginEvent(5, `{"type":"redacted_thinking","data":"xyz"}`), endEvent(5),
		beginEvent(6, `{"type":"thinking","thinking":"unfinished"}`), finishEvent("tool_use"), streamEvent("message_stop", ""))
	got, _, _ := exchangeWith(t, anthropic.Config{}, wiretest.Request(), events...)
	if got.Message.Calls[1].Args != "{}" {
		t.Errorf("a call without arguments: %+v", got.Message.Calls)
	}
	for i := range got.Message.Calls {
		got.Message.Calls[i].ID = fmt.Sprintf("1-%d", i)
	}
	req := wiretest.Request()
	req.Messages = append(req.Messages, got.Message, model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0"}, {Call: "1-1", Text: "b"}}})
	_, body, _ := exchangeWith(t, anthropic.Config{}, req, wireDialect().Hello...)
	if diff := cmp.Diff("thinking:one/sig-one text:I look. tool_use:toolu_1_0 thinking:two/sig-two tool_use:toolu_1_1 redacted_thinking:xyz", describeBlocks(body)); diff != "" {
		t.Error(diff)
	}
	req.Model = "m-2"
	_, body, _ = exchangeWith(t, anthropic.Config{}, req, wireDialect().Hello...)
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
	events := []string{startEvent(startUsage), beginEvent(0, `{"type":"thinking","thinking":""}`), deltaEvent(0, `{"type":"thinking_delta","thinking":"hm"}`), endEvent(0),
		beginEvent(1, textBlock), textEvent(1, "a"), endEvent(1), beginEvent(2, textBlock), textEvent(2, "b"), endEvent(2), finishEvent("something_new"), streamEvent("message_stop", "")}
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
		_, body, _ := exchangeWith(t, anthropic.Config{}, req, wireDialect().Hello...)
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
		_, body, header := exchangeWith(t, anthropic.Config{DropStale: c.drop}, req, wireDialect().Hello...)
		if diff := cmp.Diff(c.want, body["thinking"]); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
		if header.Get("Anthropic-Beta") != c.beta {
			t.Errorf("%+v: the beta header is %q", c, header.Get("Anthropic-Beta"))
		}
	}
}

// TestWhatFamiliesRefuseIsNotSent: newer models take no temperature, and some of
// them no forced tool even before they have thought.
func TestWhatFamiliesRefuseIsNotSent(t *testing.T) {
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
		_, body, _ := exchangeWith(t, anthropic.Config{}, req, wireDialect().Hello...)
		if (body["temperature"] != nil) != c.heat || (body["tool_choice"] != nil) != c.forced {
			t.Errorf("%+v: %v %v", c, body["temperature"], body["tool_choice"])
		}
	}
}
