package openai

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// callPrefix begins the ids of calls on the wire.
const callPrefix = "call_"

// Words of both APIs.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"

	typeFunction   = "function"
	typeJSONSchema = "json_schema"

	choiceNone     = "none"
	choiceRequired = "required"

	tierDefault = "default"
)

// renderChat renders a request to Chat Completions. chatbody_test.go has the body as a struct.
func (c *Client) renderChat(w *modelhttp.JSONWriter, req model.Request) ([]byte, error) {
	messages, err := modelhttp.SendableWithMedia(req)
	if err != nil {
		return nil, err
	}
	w.Open('{')
	w.TextField("model", req.Model)
	w.Name("messages")
	w.Open('[')
	if text := systemText(req); text != "" {
		writeChatMessage(w, roleSystem, text)
	}
	if writeChatMessages(w, messages) == 0 {
		return nil, modelhttp.UnsentError("every message is empty")
	}
	w.Close(']')
	if c.cfg.MaxTokens {
		w.IntField("max_tokens", req.MaxOutput)
	} else {
		w.IntField("max_completion_tokens", req.MaxOutput)
	}
	w.LiteralField("stream", "true")
	w.LiteralField("stream_options", `{"include_usage":true}`)
	if err := c.writeChatOptions(w, req); err != nil {
		return nil, err
	}
	w.Close('}')
	return w.Body()
}

// writeChatOptions writes the tools, and the fields that not every request has.
func (c *Client) writeChatOptions(w *modelhttp.JSONWriter, req model.Request) error {
	if err := writeChatTools(w, req.Tools); err != nil {
		return err
	}
	if choice := toolChoice(req, chatChoice); choice != nil {
		w.ValueField("tool_choice", choice)
	}
	if s, ok := c.answerSchema(req); ok {
		w.ValueField("response_format", chatFormat{typeJSONSchema, s})
	}
	effort := requestEffort(req.Model, req.Effort, len(req.Tools) > 0)
	w.OptionalField("reasoning_effort", effort)
	if req.Temperature != nil && takesTemperature(req.Model, effort) {
		w.ValueField("temperature", req.Temperature)
	}
	if c.own {
		w.TextField("service_tier", tierDefault)
	}
	return nil
}

func writeChatTools(w *modelhttp.JSONWriter, tools []model.ToolSpec) error {
	if len(tools) == 0 {
		return nil
	}
	w.Name("tools")
	w.Open('[')
	for _, t := range tools {
		schema, err := modelhttp.ToolSchema(t)
		if err != nil {
			return err
		}
		w.Open('{')
		w.TextField("type", typeFunction)
		w.Name("function")
		w.Open('{')
		w.TextField("name", t.Name)
		w.OptionalField("description", t.Description)
		w.RawField("parameters", schema)
		w.Close('}')
		w.Close('}')
	}
	w.Close(']')
	return nil
}

// chatChoice forces a tool.
func chatChoice(name string) any {
	choice := chosenTool{Type: typeFunction}
	choice.Function.Name = name
	return choice
}

// systemText is one message: servers that speak this API take no second one, and
// those that cache do so by the longest prefix. What may change comes last.
func systemText(req model.Request) string {
	parts := slices.DeleteFunc([]string{req.System, req.Dynamic}, modelhttp.IsBlank)
	return strings.Join(parts, "\n\n")
}

// writeChatMessages writes messages, and returns how many; consecutive user messages become one.
func writeChatMessages(w *modelhttp.JSONWriter, messages []model.Message) (written int) {
	var said []string // by the user, not yet written
	var shown []chatPart
	flush := func() {
		text := strings.Join(said, "\n\n")
		switch {
		case len(shown) > 0:
			if text != "" {
				shown = append(shown, textPart(text))
			}
			w.Open('{')
			w.TextField("role", roleUser)
			w.ValueField("content", shown)
			w.Close('}')
		case text != "":
			writeChatMessage(w, roleUser, text)
		default:
			return
		}
		written++
		said, shown = nil, nil
	}
	for i := range messages {
		switch m := &messages[i]; m.Role {
		case model.User:
			shown = append(shown, mediaParts(*m)...)
			if !modelhttp.IsBlank(m.Text) {
				said = append(said, m.Text)
			}
		case model.Assistant:
			if !modelhttp.IsBlank(m.Text) || len(m.Calls) > 0 {
				flush()
				writeAssistantMessage(w, m)
				written++
			}
		case model.ToolRole:
			flush()
			for _, r := range m.Results {
				writeChatResult(w, r)
				written++
			}
		}
	}
	flush()
	return written
}

// writeChatMessage writes a message that is one text.
func writeChatMessage(w *modelhttp.JSONWriter, role, text string) {
	w.Open('{')
	w.TextField("role", role)
	w.TextField("content", text)
	w.Close('}')
}

func writeAssistantMessage(w *modelhttp.JSONWriter, m *model.Message) {
	w.Open('{')
	w.TextField("role", roleAssistant)
	if !modelhttp.IsBlank(m.Text) {
		w.TextField("content", m.Text)
	}
	if len(m.Calls) > 0 {
		w.Name("tool_calls")
		w.Open('[')
		for i := range m.Calls {
			writeChatCall(w, &m.Calls[i])
		}
		w.Close(']')
	}
	w.Close('}')
}

func writeChatCall(w *modelhttp.JSONWriter, c *model.ToolCall) {
	w.Open('{')
	w.Name("id")
	w.CallID(callPrefix, c.ID)
	w.TextField("type", typeFunction)
	w.Name("function")
	w.Open('{')
	w.TextField("name", modelhttp.CallName(c.Name))
	w.Name("arguments")
	w.ArgumentsText(c)
	w.Close('}')
	w.Close('}')
}

func writeChatResult(w *modelhttp.JSONWriter, r model.ToolResult) {
	w.Open('{')
	w.TextField("role", roleTool)
	w.TextField("content", resultText(r))
	w.Name("tool_call_id")
	w.CallID(callPrefix, r.Call)
	w.Close('}')
}

const (
	errorPrefix  = "error: "     // marks a failed result: this API has no flag for it
	nothingShown = "(no output)" // not every server of this API takes an empty result
)

func resultText(r model.ToolResult) string {
	if modelhttp.IsBlank(r.Text) {
		r.Text = nothingShown
	}
	if r.Error && !strings.HasPrefix(strings.ToLower(r.Text), "error") {
		return errorPrefix + r.Text
	}
	return r.Text
}
