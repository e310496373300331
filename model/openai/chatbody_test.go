package openai_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
)

// chatBody is the body of a request to Chat Completions. The client writes it field by field.
type chatBody struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	MaxTokens           int64           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int64           `json:"max_completion_tokens,omitempty"`
	Stream              bool            `json:"stream"`
	StreamOptions       json.RawMessage `json:"stream_options"`
	Tools               []chatTool      `json:"tools,omitempty"`
	ToolChoice          json.RawMessage `json:"tool_choice,omitempty"`
	ResponseFormat      json.RawMessage `json:"response_format,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	ServiceTier         string          `json:"service_tier,omitempty"`
}

type chatMessage struct {
	Role       string      `json:"role"`
	Content    chatContent `json:"content,omitzero"`
	ToolCalls  []chatCall  `json:"tool_calls,omitempty"`
	ToolCallID string      `json:"tool_call_id,omitempty"`
}

// chatContent is a text, or the parts of a message that shows media.
type chatContent struct {
	text  string
	parts json.RawMessage
}

func (c chatContent) IsZero() bool { return c.text == "" && c.parts == nil }

func (c *chatContent) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &c.text)
	}
	c.parts = bytes.Clone(raw)
	return nil
}

func (c chatContent) MarshalJSON() ([]byte, error) {
	if c.parts != nil {
		return c.parts, nil
	}
	return modelhttp.EncodeBody(c.text)
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// TestBodiesAreWhatEncodingJSONWrites: each body decodes to the struct without a field that the struct lacks, and
// encoding/json writes the same bytes of it.
func TestBodiesAreWhatEncodingJSONWrites(t *testing.T) {
	requests := wiretest.Requests("m-1")
	stormy := wiretest.Request()
	stormy.Messages = append(stormy.Messages, model.Message{Role: model.Assistant, Text: "<&> \u2028\x00\xff\"\\\n", Calls: []model.ToolCall{
		{ID: "1-0", Name: "a b\xff", Args: "{\"a\": \"<\u2029>\"}"}, {ID: "1-1", Name: "", Args: "\xff{"}}},
		model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0", Text: "\t", Error: true}, {Call: "1-1", Text: "\t<x>", Error: true}}})
	stormy.Tools = append(stormy.Tools, model.ToolSpec{Name: "spaced", Schema: "{ \"type\": \"object\",\n \"properties\": {\"a\": {\"pattern\": \"<\\u0001>\"}} }"})
	requests["stormy texts"] = stormy
	bodies := 0
	for _, maxTokens := range []bool{false, true} {
		for name, request := range requests {
			client, err := openai.New(openai.Config{API: openai.APIChat, MaxTokens: maxTokens, Structured: openai.StructuredAlways, Transport: bodyChecker{t, name, &bodies}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Complete(t.Context(), request, nil); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	}
	if bodies < len(requests) {
		t.Errorf("%d bodies of %d requests", bodies, len(requests))
	}
}

// bodyChecker refuses each request after it has checked its body.
type bodyChecker struct {
	t      *testing.T
	name   string
	bodies *int
}

func (c bodyChecker) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	*c.bodies++
	var body chatBody
	decoder := json.NewDecoder(bytes.NewReader(sent))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		c.t.Errorf("%s: %v", c.name, err)
	}
	sent = bytes.ReplaceAll(sent, []byte(`\ufffd`), []byte("\ufffd")) // of a byte that was not UTF-8
	again, err := modelhttp.EncodeBody(body)
	if err != nil || string(again) != string(sent) {
		c.t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, sent, again)
	}
	return &http.Response{StatusCode: http.StatusTeapot, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(""))}, nil
}
