package gemini_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/conformance"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/gemini"
)

// chunkEvent renders one event: parts, a reason or "", and more fields or "".
func chunkEvent(parts, reason, more string) string {
	if reason != "" {
		reason = fmt.Sprintf(`,"finishReason":%q`, reason)
	}
	return fmt.Sprintf("data: {\"candidates\":[{\"content\":{\"parts\":[%s],\"role\":\"model\"}%s,\"index\":0}]%s,\"modelVersion\":\"m-1-served\",\"responseId\":\"r\"}\n\n", parts, reason, more)
}

func textPart(s string) string { return fmt.Sprintf(`{"text":%q}`, s) }

func callPart(name, args string) string {
	return fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s,"id":"x1"}}`, name, args)
}

// signedPart adds a signature to a part.
func signedPart(part, signature string) string {
	return fmt.Sprintf(`%s,"thoughtSignature":%q}`, strings.TrimSuffix(part, "}"), signature)
}

func thoughtPart(s string) string { return fmt.Sprintf(`{"text":%q,"thought":true}`, s) }

const (
	early = `,"usageMetadata":{"promptTokenCount":35,"totalTokenCount":35}`
	usage = `,"usageMetadata":{"promptTokenCount":35,"cachedContentTokenCount":7,"candidatesTokenCount":9,"thoughtsTokenCount":6,"totalTokenCount":50}`
)

func wireDialect() wiretest.Dialect {
	hello := []string{chunkEvent(textPart(""), "", early), chunkEvent(textPart("Hello, "), "", early), ": keep-alive\n\n", chunkEvent(textPart("wörld"), "", early)}
	open := chunkEvent(textPart("I look."), "", early)
	read, grep := callPart("read_file", `{"path":"a.go"}`), callPart("grep", `{"pattern":"x y","glob":"*.go"}`)
	return wiretest.Dialect{
		New: func(root string, t modelhttp.Timeouts) (model.Client, error) {
			return gemini.New(gemini.Config{BaseURL: root, APIKey: wiretest.Key, Timeouts: t})
		},
		Hello:      append(hello[:4:4], chunkEvent("", "STOP", usage)),
		HelloUsage: model.Usage{Input: 28, Output: 15, Reasoning: 6, CacheRead: 7},
		NoUsage:    append(hello[:4:4], chunkEvent("", "STOP", "")),
		Calls:      []string{open, chunkEvent(read, "", early), chunkEvent(grep, "STOP", usage)},
		NoMarks:    []string{open, chunkEvent(read+","+grep, "", early)},
		Limit:      []string{open, chunkEvent("", "MAX_TOKENS", usage)},
		WholeCalls: true,
		Refusal:    []string{chunkEvent(textPart("Well"), "", early), chunkEvent("", "SAFETY", usage)},
		Overload:   []string{hello[1], "data: {\"error\":{\"code\":503,\"message\":\"busy\",\"status\":\"UNAVAILABLE\"}}\n\n"},
		ErrorBody: func(kind, message string) string {
			m, _ := json.Marshal(message)
			return fmt.Sprintf(`{"error":{"code":400,"message":%s,"status":%q}}`, m, kind)
		},
		Thinking: []string{chunkEvent(thoughtPart("hm"), "", early), chunkEvent(signedPart(thoughtPart("so"), "c2ln"), "", early), chunkEvent(textPart("I look."), "", early),
			chunkEvent(signedPart(read, "c2lnMg=="), "", early), chunkEvent(signedPart(textPart(""), "c2lnMw=="), "STOP", usage)},
		ErrorEvent: func(kind, message string) string {
			return fmt.Sprintf("data: {\"error\":{\"code\":400,\"message\":%q,\"status\":%q}}\n\n", message, kind)
		},
		Judge: func(body []byte) error {
			return conformance.Gemini(body, "m-1", func(string) string { return "m-1" })
		},
		TooLong:    `{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`,
		BadRequest: `[{"error":{"code":400,"message":"Invalid value","status":"INVALID_ARGUMENT"}}]`,
	}
}

func TestConformance(t *testing.T) { wiretest.Run(t, wireDialect()) }

// completeWith sends a request to a server that answers with events, and returns
// what the server was sent.
func completeWith(t *testing.T, cfg gemini.Config, req model.Request, events ...string) (model.Reply, map[string]any, *http.Request) {
	t.Helper()
	var body map[string]any
	var asked *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &body)
		}
		if err != nil {
			t.Errorf("%s %s: %v", r.URL.Path, data, err)
		}
		asked = r
		wiretest.Stream(events)(w, r)
	}))
	defer s.Close()
	cfg.BaseURL = s.URL + cfg.BaseURL
	c, err := gemini.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Complete(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got, body, asked
}

func parseJSON(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func fullConversation() []model.Message {
	return []model.Message{
		{Role: model.User, Text: "Hello?"},
		{Role: model.Assistant, Text: "lost", Tombstone: true},
		{Role: model.User, Text: "Still there?"},
		{Role: model.Assistant, Text: "I look.",
			Calls:  []model.ToolCall{{ID: "3-0", Name: "read_file", Args: `{"path":"a.go"}`}, {ID: "3-1", Name: "7zip", Args: `{"path":"a`, Cut: true}},
			Opaque: []model.Opaque{{Issuer: "anthropic/m-1", Kind: "parts", Data: []byte(`[{"call":true,"thoughtSignature":"theirs"}]`)}}},
		{Role: model.ToolRole, Results: []model.ToolResult{{Call: "3-0", Text: "package a"}, {Call: "3-1", Text: "cut off", Error: true}}},
		{Role: model.User, Text: "Hurry."},
		{Role: model.Assistant, Text: "  "},
		{Role: model.User, Text: "Well?"},
	}
}

func TestRequestOnTheWire(t *testing.T) {
	req := wiretest.Request()
	req.Model, req.Messages, req.NoTools, req.Effort, req.Dynamic = "gemini-3.8-flash", fullConversation(), true, "low", "Today is Monday."
	req.Tools = append(req.Tools, model.ToolSpec{Name: "now"})
	zero := 0.0
	req.Temperature = &zero
	t.Setenv("GEMINI_API_KEY", "from-the-environment")
	t.Setenv("GOOGLE_API_KEY", "from-the-environment")
	_, body, asked := completeWith(t, gemini.Config{APIKey: wiretest.Key, BaseURL: "/v1beta/"}, req, wireDialect().Hello...)
	want := parseJSON(t, `{
		"systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Today is Monday."}]},
		"generationConfig": {"maxOutputTokens": 1000, "temperature": 0, "thinkingConfig": {"thinkingLevel": "low"}},
		"toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
		"tools": [{"functionDeclarations": [
			{"name": "read_file", "description": "Reads a file.", "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}}},
			{"name": "now", "description": "now"}]}],
		"contents": [
			{"role": "user", "parts": [{"text": "Hello?"}, {"text": "Still there?"}]},
			{"role": "model", "parts": [{"text": "I look."},
				{"functionCall": {"id": "call_3_0", "name": "read_file", "args": {"path": "a.go"}}, "thoughtSignature": "skip_thought_signature_validator"},
				{"functionCall": {"id": "call_3_1", "name": "_7zip", "args": {"undecodable_arguments": "{\"path\":\"a"}}}]},
			{"role": "user", "parts": [
				{"functionResponse": {"id": "call_3_0", "name": "read_file", "response": {"output": "package a"}}},
				{"functionResponse": {"id": "call_3_1", "name": "_7zip", "response": {"error": "cut off"}}},
				{"text": "Hurry."}, {"text": "Well?"}]}
		]}`)
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if got := asked.URL.String(); got != "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse" || asked.Method != http.MethodPost {
		t.Errorf("%s %s", asked.Method, got)
	}
	if asked.Header.Get("X-Goog-Api-Key") != wiretest.Key || asked.Header.Get("Authorization") != "" || asked.Header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", asked.Header)
	}
}

func TestSmallestRequest(t *testing.T) {
	req := model.Request{Model: "a/b?c", MaxOutput: 5, NoTools: true, Effort: "high", Messages: []model.Message{{Role: model.User, Text: "a"}}}
	_, body, asked := completeWith(t, gemini.Config{}, req, wireDialect().Hello...)
	want := parseJSON(t, `{"contents": [{"role": "user", "parts": [{"text": "a"}]}], "generationConfig": {"maxOutputTokens": 5}}`)
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if _, ok := asked.Header["X-Goog-Api-Key"]; ok || asked.RequestURI != "/v1beta/models/a%2Fb%3Fc:streamGenerateContent?alt=sse" {
		t.Errorf("%s, headers %v", asked.RequestURI, asked.Header)
	}
}

// TestToolsCanBeForced: any, one of them, none before all; what is not offered
// forces nothing (A24).
func TestToolsCanBeForced(t *testing.T) {
	for _, c := range []struct {
		choice  string
		noTools bool
		want    string
	}{
		{"", false, ``}, {"any", false, `{"mode":"ANY"}`}, {"read_file", false, `{"mode":"ANY","allowedFunctionNames":["read_file"]}`},
		{"ask_human", false, ``}, {"any", true, `{"mode":"NONE"}`},
	} {
		req := wiretest.Request()
		req.Choice, req.NoTools = c.choice, c.noTools
		_, body, _ := completeWith(t, gemini.Config{}, req, wireDialect().Hello...)
		var want any
		if c.want != "" {
			want = map[string]any{"functionCallingConfig": any(parseJSON(t, c.want))}
		}
		if diff := cmp.Diff(want, body["toolConfig"]); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
		req.Tools = nil
		if _, body, _ := completeWith(t, gemini.Config{}, req, wireDialect().Hello...); body["toolConfig"] != nil || body["tools"] != nil {
			t.Errorf("without tools: %v", body)
		}
	}
}

func TestEffortIsWhatTheModelTakes(t *testing.T) {
	for _, c := range []struct {
		model, asked, want string
		output             int64
	}{
		{"gemini-3.8-flash", "medium", `{"thinkingLevel":"medium"}`, 1000}, {"gemini-4-argon", "high", `{"thinkingLevel":"high"}`, 1000},
		{"gemini-3-pro-preview", "medium", `{"thinkingLevel":"high"}`, 1000}, {"gemini-flash-latest", "low", `{"thinkingLevel":"low"}`, 1000},
		{"gemini-2.5-pro", "low", `{"thinkingBudget":1024}`, 64000}, {"gemini-2.5-flash", "high", `{"thinkingBudget":24576}`, 64000},
		{"gemini-2.5-flash", "high", `{"thinkingBudget":5000}`, 10000}, {"gemini-2.5-flash", "high", `{"thinkingBudget":512}`, 10},
		{"gemini-2.0-flash", "high", ``, 1000}, {"gemini-1.5-pro", "high", ``, 1000}, {"gemma-3-27b-it", "high", ``, 1000},
		{"gemini-3.8-flash", "", ``, 1000}, {"gemini-3.8-flash", "utmost", ``, 1000},
	} {
		req := wiretest.Request()
		req.Model, req.Effort, req.MaxOutput = c.model, c.asked, c.output
		_, body, _ := completeWith(t, gemini.Config{}, req, wireDialect().Hello...)
		var want any
		if c.want != "" {
			want = any(parseJSON(t, c.want))
		}
		if diff := cmp.Diff(want, body["generationConfig"].(map[string]any)["thinkingConfig"]); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
	}
}

// TestReasonsToStop: why a reply ended, in our words.
func TestReasonsToStop(t *testing.T) {
	for reason, want := range map[string]model.Stop{
		"STOP": model.StopEnd, "MAX_TOKENS": model.StopMaxOutput, "SAFETY": model.StopRefusal, "RECITATION": model.StopRefusal,
		"BLOCKLIST": model.StopRefusal, "PROHIBITED_CONTENT": model.StopRefusal, "SPII": model.StopRefusal,
		"MALFORMED_FUNCTION_CALL": model.StopUnknown, "UNEXPECTED_TOOL_CALL": model.StopUnknown, "OTHER": model.StopUnknown, "OF_TOMORROW": model.StopUnknown,
	} {
		got, _, _ := completeWith(t, gemini.Config{}, wiretest.Request(), chunkEvent(textPart("a"), reason, usage))
		if got.Stop != want || got.Message.Text != "a" || !got.UsageKnown {
			t.Errorf("%s: %+v", reason, got)
		}
	}
	got, _, _ := completeWith(t, gemini.Config{}, wiretest.Request(), "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"},\"usageMetadata\":{\"promptTokenCount\":12}}\n\n")
	if got.Stop != model.StopRefusal || !got.UsageKnown || got.Usage != (model.Usage{Input: 12}) {
		t.Errorf("a blocked prompt: %+v", got)
	}
}

// TestCallsInAnyForm: whole, in one event or many, with and without arguments.
func TestCallsInAnyForm(t *testing.T) {
	a, b := model.ToolCall{Name: "a", Args: `{"x":1}`}, model.ToolCall{Name: "b", Args: `{}`}
	for name, c := range map[string]struct {
		events []string
		want   []model.ToolCall
	}{
		"two in one event":  {[]string{chunkEvent(callPart("a", `{"x":1}`)+","+callPart("b", `{}`), "STOP", "")}, []model.ToolCall{a, b}},
		"the same twice":    {[]string{chunkEvent(callPart("a", `{"x":1}`), "", ""), chunkEvent(callPart("a", `{"x":1}`), "STOP", "")}, []model.ToolCall{a, a}},
		"null arguments":    {[]string{chunkEvent(callPart("b", `null`), "STOP", "")}, []model.ToolCall{b}},
		"no arguments":      {[]string{chunkEvent(`{"functionCall":{"name":"b"}}`, "STOP", "")}, []model.ToolCall{b}},
		"no object":         {[]string{chunkEvent(callPart("a", `[1]`), "STOP", "")}, []model.ToolCall{{Name: "a", Args: `[1]`}}},
		"another candidate": {[]string{"data: {\"candidates\":[{\"index\":1,\"content\":{\"parts\":[{\"text\":\"b\"}]},\"finishReason\":\"STOP\"}]}\n\n", chunkEvent(callPart("b", `{}`), "STOP", "")}, []model.ToolCall{b}},
		"parts unknown":     {[]string{chunkEvent(`{"executableCode":{"code":"1"}},`+callPart("b", `{}`), "STOP", "")}, []model.ToolCall{b}},
	} {
		got, _, _ := completeWith(t, gemini.Config{}, wiretest.Request(), c.events...)
		if diff := cmp.Diff(c.want, got.Message.Calls); diff != "" || got.Message.Text != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestErrorsOfGoogle: what stands in the details of an error counts.
func TestErrorsOfGoogle(t *testing.T) {
	detail := func(code int, status, message, details string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q,"details":[%s]}}`, code, message, status, details)
	}
	const retry = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
	for name, c := range map[string]struct {
		status int
		body   string
		want   model.Error
	}{
		"no valid key":   {400, detail(400, "INVALID_ARGUMENT", "API key not valid.", `{"reason":"API_KEY_INVALID"}`), model.Error{Class: model.Auth, Unbilled: true}},
		"no key":         {403, detail(403, "PERMISSION_DENIED", "no key", ``), model.Error{Class: model.Auth, Unbilled: true}},
		"who":            {401, detail(401, "UNAUTHENTICATED", "who?", ``), model.Error{Class: model.Auth, Unbilled: true}},
		"no such model":  {404, detail(404, "NOT_FOUND", "models/x is not found", ``), model.Error{Class: model.Misconfigured, Unbilled: true}},
		"not here":       {400, detail(400, "FAILED_PRECONDITION", "User location is not supported.", ``), model.Error{Class: model.Misconfigured, Unbilled: true}},
		"rate limit":     {429, detail(429, "RESOURCE_EXHAUSTED", "quota", retry), model.Error{Class: model.RateLimit, Unbilled: true, RetryAfter: 34500 * time.Millisecond}},
		"in a list":      {429, "[" + detail(429, "RESOURCE_EXHAUSTED", "quota", retry) + "]", model.Error{Class: model.RateLimit, Unbilled: true, RetryAfter: 34500 * time.Millisecond}},
		"no such delay":  {429, detail(429, "RESOURCE_EXHAUSTED", "quota", `{"retryDelay":"soon"}`), model.Error{Class: model.RateLimit, Unbilled: true}},
		"delay too long": {429, detail(429, "RESOURCE_EXHAUSTED", "quota", `{"retryDelay":"9000h"}`), model.Error{Class: model.RateLimit, Unbilled: true, RetryAfter: modelhttp.MaxRetryAfter}},
		"strange detail": {429, detail(429, "RESOURCE_EXHAUSTED", "quota", `7`), model.Error{Class: model.RateLimit, Unbilled: true}},
		"internal":       {500, detail(500, "INTERNAL", "oops", ``), model.Error{Class: model.Overload}},
		"overload":       {503, detail(503, "UNAVAILABLE", "overloaded", ``), model.Error{Class: model.Overload}},
		"too slow":       {504, detail(504, "DEADLINE_EXCEEDED", "slow", ``), model.Error{Class: model.Network}},
	} {
		for _, inStream := range []bool{false, true} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if inStream {
					wiretest.Stream([]string{"data: " + c.body + "\n\n"})(w, r)
					return
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			client, err := gemini.New(gemini.Config{BaseURL: s.URL, APIKey: wiretest.Key})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Complete(t.Context(), wiretest.Request(), nil)
			s.Close()
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("%s: %v", name, err)
			}
			switch {
			case inStream && strings.HasPrefix(c.body, "["): // is no event
				if e.Class != model.Undecodable {
					t.Errorf("%s in a stream: %+v", name, e)
				}
			case e.Class != c.want.Class || e.RetryAfter != c.want.RetryAfter || e.Message == "" || e.Unbilled != (c.want.Unbilled && !inStream):
				t.Errorf("%s, in a stream %v: %+v", name, inStream, e)
			}
		}
	}
}

func TestConfiguration(t *testing.T) {
	for _, bad := range []string{"localhost:8080", "ftp://h", "://", "http://", "http://h?key=" + wiretest.Key} {
		if _, err := gemini.New(gemini.Config{BaseURL: bad}); err == nil || strings.Contains(err.Error(), wiretest.Key) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, key := range wiretest.BadKeys() {
		_, err := gemini.New(gemini.Config{APIKey: key})
		wiretest.CheckRefusedKey(t, key, err)
	}
	c, err := gemini.New(gemini.Config{APIKey: wiretest.Key})
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%v %+v %#v %s", c, c, c, c); strings.Contains(s, wiretest.Key) {
		t.Error("printing a client shows its key")
	}
}

// TestTheSchemaOfAnAnswer: newer models are held to it beside tools, others only
// without, the oldest not at all.
func TestTheSchemaOfAnAnswer(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}`
	for _, c := range []struct {
		model, schema, choice string
		tools, sent           bool
	}{
		{"gemini-3.8-flash", schema, "", true, true}, {"gemini-3.8-flash", schema, "any", true, false}, {"gemini-3.8-flash", "", "", true, false},
		{"gemini-2.5-pro", schema, "", true, false}, {"gemini-2.5-pro", schema, "", false, true}, {"gemini-2.0-flash", schema, "", false, false},
		{"gemma-3", schema, "", false, false},
	} {
		req := wiretest.Request()
		req.Model, req.Schema, req.Choice = c.model, c.schema, c.choice
		if !c.tools {
			req.Tools = nil
		}
		_, body, _ := completeWith(t, gemini.Config{}, req, wireDialect().Hello...)
		generation := body["generationConfig"].(map[string]any)
		var want, kind any
		if c.sent {
			want, kind = any(parseJSON(t, schema)), "application/json"
		}
		if diff := cmp.Diff(want, generation["responseJsonSchema"]); diff != "" || generation["responseMimeType"] != kind {
			t.Errorf("%+v: %v", c, generation)
		}
	}
}
