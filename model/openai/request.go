package openai

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// callPrefix begins the ids of calls on the wire.
const callPrefix = "call_"

// chatRequest renders a request for the wire.
func (c *Client) chatRequest(req model.Request) (sdk.ChatCompletionNewParams, error) {
	messages, err := modelhttp.SendableWithMedia(req)
	if err != nil {
		return sdk.ChatCompletionNewParams{}, err
	}
	p := sdk.ChatCompletionNewParams{
		Model:         req.Model,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if c.cfg.MaxTokens {
		p.MaxTokens = param.NewOpt(req.MaxOutput)
	} else {
		p.MaxCompletionTokens = param.NewOpt(req.MaxOutput)
	}
	said := chatMessages(messages)
	if len(said) == 0 {
		return p, &model.Error{Class: model.BadRequest, Unbilled: true, Message: "not sent: every message is empty"}
	}
	if text := systemText(req); text != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(text))
	}
	p.Messages = append(p.Messages, said...)
	for _, t := range req.Tools {
		tool, err := functionParam(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(tool))
	}
	p.ToolChoice = chatToolChoice(req)
	if s, ok := c.answerSchema(req); ok {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: param.Override[shared.ResponseFormatJSONSchemaJSONSchemaParam](s.withType(""))}
	}
	asked := requestEffort(req.Model, req.Effort, len(req.Tools) > 0)
	p.ReasoningEffort = shared.ReasoningEffort(asked)
	if req.Temperature != nil && takesTemperature(req.Model, asked) {
		p.Temperature = param.NewOpt(*req.Temperature)
	}
	if c.own {
		p.ServiceTier = sdk.ChatCompletionNewParamsServiceTierDefault
	}
	return p, nil
}

// chatToolChoice renders the tool choice.
func chatToolChoice(req model.Request) sdk.ChatCompletionToolChoiceOptionUnionParam {
	auto := func(v sdk.ChatCompletionToolChoiceOptionAuto) sdk.ChatCompletionToolChoiceOptionUnionParam {
		return sdk.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt(string(v))}
	}
	switch forced := modelhttp.ToolChoice(req); {
	case req.NoTools && len(req.Tools) > 0:
		return auto(sdk.ChatCompletionToolChoiceOptionAutoNone)
	case forced == model.ChoiceAny:
		return auto(sdk.ChatCompletionToolChoiceOptionAutoRequired)
	case forced != "":
		return sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: forced})
	}
	return sdk.ChatCompletionToolChoiceOptionUnionParam{}
}

// systemText is one message: servers that speak this API take no second one, and
// those that cache do so by the longest prefix. What may change comes last.
func systemText(req model.Request) string {
	parts := slices.DeleteFunc([]string{req.System, req.Dynamic}, modelhttp.IsBlank)
	return strings.Join(parts, "\n\n")
}

// functionParam renders a tool with its schema as it was written.
func functionParam(t model.ToolSpec) (shared.FunctionDefinitionParam, error) {
	schema, err := modelhttp.ToolSchema(t)
	if err != nil {
		return shared.FunctionDefinitionParam{}, err
	}
	data, err := json.Marshal(struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}{t.Name, t.Description, schema})
	if err != nil {
		return shared.FunctionDefinitionParam{}, &model.Error{Class: model.BadRequest, Unbilled: true,
			Message: "not sent: a tool's schema does not encode"}
	}
	return param.Override[shared.FunctionDefinitionParam](json.RawMessage(data)), nil
}

// chatMessages renders messages; consecutive user messages become one.
func chatMessages(messages []model.Message) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	var said []string // by the user, not yet in out
	var shown []sdk.ChatCompletionContentPartUnionParam
	flush := func() {
		text := strings.Join(said, "\n\n")
		switch {
		case len(shown) > 0 && text != "":
			out = append(out, sdk.UserMessage(append(shown, sdk.TextContentPart(text))))
		case len(shown) > 0:
			out = append(out, sdk.UserMessage(shown))
		case text != "":
			out = append(out, sdk.UserMessage(text))
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
				out = append(out, sdk.ToolMessage(resultText(r), modelhttp.CallID(callPrefix, r.Call)))
			}
		}
	}
	flush()
	return out
}

func assistantMessage(m model.Message) sdk.ChatCompletionMessageParamUnion {
	var a sdk.ChatCompletionAssistantMessageParam
	if !modelhttp.IsBlank(m.Text) {
		a.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.Calls {
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: modelhttp.CallID(callPrefix, c.ID),
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: modelhttp.CallName(c.Name), Arguments: string(modelhttp.CallArguments(c)),
				},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &a}
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
