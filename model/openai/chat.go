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

// renderChat renders a request to Chat Completions.
func (c *Client) renderChat(req model.Request) ([]byte, error) {
	messages, err := modelhttp.SendableWithMedia(req)
	if err != nil {
		return nil, err
	}
	b := chatBody{Model: req.Model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true}, ToolChoice: toolChoice(req, chatChoice)}
	if c.cfg.MaxTokens {
		b.MaxTokens = req.MaxOutput
	} else {
		b.MaxCompletionTokens = req.MaxOutput
	}
	said := chatMessages(messages)
	if len(said) == 0 {
		return nil, modelhttp.UnsentError("every message is empty")
	}
	if text := systemText(req); text != "" {
		b.Messages = append(b.Messages, chatMessage{Role: roleSystem, Content: text})
	}
	b.Messages = append(b.Messages, said...)
	for _, t := range req.Tools {
		schema, err := modelhttp.ToolSchema(t)
		if err != nil {
			return nil, err
		}
		b.Tools = append(b.Tools, chatTool{typeFunction, chatFunction{t.Name, t.Description, schema}})
	}
	if s, ok := c.answerSchema(req); ok {
		b.ResponseFormat = &chatFormat{typeJSONSchema, s}
	}
	b.ReasoningEffort = requestEffort(req.Model, req.Effort, len(req.Tools) > 0)
	if req.Temperature != nil && takesTemperature(req.Model, b.ReasoningEffort) {
		b.Temperature = req.Temperature
	}
	if c.own {
		b.ServiceTier = tierDefault
	}
	return modelhttp.EncodeBody(b)
}

// chatChoice forces a tool.
func chatChoice(name string) any {
	return chatTool{Type: typeFunction, Function: chatFunction{Name: name}}
}

// systemText is one message: servers that speak this API take no second one, and
// those that cache do so by the longest prefix. What may change comes last.
func systemText(req model.Request) string {
	parts := slices.DeleteFunc([]string{req.System, req.Dynamic}, modelhttp.IsBlank)
	return strings.Join(parts, "\n\n")
}

// chatMessages renders messages; consecutive user messages become one.
func chatMessages(messages []model.Message) []chatMessage {
	var out []chatMessage
	var said []string // by the user, not yet in out
	var shown []chatPart
	flush := func() {
		text := strings.Join(said, "\n\n")
		switch {
		case len(shown) > 0 && text != "":
			out = append(out, chatMessage{Role: roleUser, Content: append(shown, textPart(text))})
		case len(shown) > 0:
			out = append(out, chatMessage{Role: roleUser, Content: shown})
		case text != "":
			out = append(out, chatMessage{Role: roleUser, Content: text})
		}
		said, shown = nil, nil
	}
	for _, m := range messages {
		switch m.Role {
		case model.User:
			shown = append(shown, mediaParts(m)...)
			if !modelhttp.IsBlank(m.Text) {
				said = append(said, m.Text)
			}
		case model.Assistant:
			if !modelhttp.IsBlank(m.Text) || len(m.Calls) > 0 {
				flush()
				out = append(out, assistantMessage(m))
			}
		case model.ToolRole:
			flush()
			for _, r := range m.Results {
				out = append(out, chatMessage{Role: roleTool, Content: resultText(r), ToolCallID: modelhttp.CallID(callPrefix, r.Call)})
			}
		}
	}
	flush()
	return out
}

func assistantMessage(m model.Message) chatMessage {
	a := chatMessage{Role: roleAssistant}
	if !modelhttp.IsBlank(m.Text) {
		a.Content = m.Text
	}
	for _, c := range m.Calls {
		a.ToolCalls = append(a.ToolCalls, chatCall{modelhttp.CallID(callPrefix, c.ID), typeFunction,
			calledByName{modelhttp.CallName(c.Name), string(modelhttp.CallArguments(c))}})
	}
	return a
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
