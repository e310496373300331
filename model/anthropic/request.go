package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// callPrefix begins the ids of calls on the wire.
const callPrefix = "toolu_"

// renderRequest renders a request for the wire.
func renderRequest(req model.Request, cache bool) (sdk.MessageNewParams, error) {
	messages, err := modelhttp.SendableWithMedia(req)
	if err != nil {
		return sdk.MessageNewParams{}, err
	}
	p := sdk.MessageNewParams{Model: req.Model, MaxTokens: req.MaxOutput}
	p.System = systemBlocks(req, cache)
	if p.Messages = chatMessages(messages, Provider+"/"+req.Model); len(p.Messages) == 0 {
		return p, &model.Error{Class: model.BadRequest, Unbilled: true, Message: "not sent: every message is empty"}
	}
	for _, t := range req.Tools {
		schema, err := modelhttp.ToolSchema(t)
		if err != nil {
			return p, err
		}
		tool := sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: &tool})
	}
	p.ToolChoice = toolChoice(req)
	if req.Temperature != nil && (!strings.HasPrefix(req.Model, ours) || hasAnyPrefix(req.Model, tempered)) {
		p.Temperature = param.NewOpt(*req.Temperature)
	}
	if req.Effort != "" && !hasAnyPrefix(req.Model, withoutEffort) {
		p.OutputConfig.Effort = sdk.OutputConfigEffort(req.Effort)
	}
	if s, ok := answerFormat(req); ok {
		p.OutputConfig.Format = param.Override[sdk.JSONOutputFormatParam](s)
	}
	if cache {
		setBreakpoints(p.Messages)
	}
	return p, nil
}

// answerFormat renders the schema of the answer where the API can enforce it;
// elsewhere it renders nothing, because the API rejects schemas that it cannot enforce.
func answerFormat(req model.Request) (json.RawMessage, bool) {
	s, ok := modelhttp.ConstrainSchema(req.Schema, false)
	if !ok || modelhttp.ToolChoice(req) != "" || !strings.HasPrefix(req.Model, ours) || hasAnyPrefix(req.Model, withoutForm) {
		return nil, false
	}
	data, err := json.Marshal(map[string]any{"type": "json_schema", "schema": s})
	return data, err == nil
}

// systemBlocks renders the stable part of the system prompt, the breakpoint of the
// cache, and behind it the part that may change.
func systemBlocks(req model.Request, cache bool) []sdk.TextBlockParam {
	var blocks []sdk.TextBlockParam
	if !modelhttp.IsBlank(req.System) {
		b := sdk.TextBlockParam{Text: req.System}
		if cache {
			b.CacheControl = sdk.NewCacheControlEphemeralParam()
		}
		blocks = append(blocks, b)
	}
	if !modelhttp.IsBlank(req.Dynamic) {
		blocks = append(blocks, sdk.TextBlockParam{Text: req.Dynamic})
	}
	return blocks
}

// lateBreakpoints is how many of the newest user messages end a cached
// prefix: the newest one for the next request, and the one before it because it ended
// the prefix of the last request. The API allows four breakpoints in all.
const lateBreakpoints = 2

func setBreakpoints(messages []sdk.MessageParam) {
	left := lateBreakpoints
	for i := len(messages) - 1; i >= 0 && left > 0; i-- {
		if messages[i].Role != sdk.MessageParamRoleUser {
			continue
		}
		blocks := messages[i].Content
		if c := blocks[len(blocks)-1].GetCacheControl(); c != nil {
			*c = sdk.NewCacheControlEphemeralParam()
			left--
		}
	}
}

// toolChoice renders the tool choice. A thinking model may refuse a forced choice: the
// newer models always do, and others if the transcript contains their thinking.
// For such a model the choice is left free.
func toolChoice(req model.Request) sdk.ToolChoiceUnionParam {
	forced := modelhttp.ToolChoice(req)
	switch {
	case req.NoTools && len(req.Tools) > 0:
		return sdk.ToolChoiceUnionParam{OfNone: &sdk.ToolChoiceNoneParam{}}
	case forced == "" || hasAnyPrefix(req.Model, unforced) || hasThought(req):
		return sdk.ToolChoiceUnionParam{}
	case forced == model.ChoiceAny:
		return sdk.ToolChoiceUnionParam{OfAny: &sdk.ToolChoiceAnyParam{}}
	}
	return sdk.ToolChoiceParamOfTool(forced)
}

// hasThought reports whether the model of a request has thought before in its transcript.
func hasThought(req model.Request) bool {
	return slices.ContainsFunc(req.Messages, func(m model.Message) bool {
		return !m.Tombstone && slices.ContainsFunc(m.Opaque, func(o model.Opaque) bool {
			return o.Issuer == Provider+"/"+req.Model && (o.Kind == thinkingKind || o.Kind == redactedKind)
		})
	})
}

// chatMessages renders messages; consecutive ones of a side become one.
func chatMessages(messages []model.Message, issuer string) []sdk.MessageParam {
	var out []sdk.MessageParam
	for _, m := range messages {
		role, blocks := sdk.MessageParamRoleUser, userBlocks(m)
		if m.Role == model.Assistant {
			role, blocks = sdk.MessageParamRoleAssistant, assistantBlocks(m, issuer)
		}
		if len(blocks) == 0 {
			continue // the API rejects an empty message, which has no content anyway
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	return out
}

// userBlocks renders a user or a tool message. Results come first: the API wants them
// directly after the calls.
func userBlocks(m model.Message) []sdk.ContentBlockParamUnion {
	var blocks []sdk.ContentBlockParamUnion
	for _, r := range m.Results {
		b := sdk.ToolResultBlockParam{ToolUseID: modelhttp.CallID(callPrefix, r.Call)}
		if r.Error {
			b.IsError = param.NewOpt(true)
		}
		if !modelhttp.IsBlank(r.Text) {
			b.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: r.Text}}}
		}
		blocks = append(blocks, sdk.ContentBlockParamUnion{OfToolResult: &b})
	}
	blocks = append(blocks, mediaBlocks(m)...)
	if !modelhttp.IsBlank(m.Text) {
		blocks = append(blocks, sdk.NewTextBlock(m.Text))
	}
	return blocks
}

// assistantBlocks renders an assistant message in its original order: opaque blocks,
// text, calls, unless an order block records that they were interleaved.
func assistantBlocks(m model.Message, issuer string) []sdk.ContentBlockParamUnion {
	var own []sdk.ContentBlockParamUnion
	order := ""
	for _, o := range m.Opaque {
		if o.Issuer != issuer {
			continue
		}
		if o.Kind == orderKind {
			order = string(o.Data)
		} else if b, ok := renderOpaque(o); ok {
			own = append(own, b)
		}
	}
	var calls []sdk.ContentBlockParamUnion
	for _, c := range m.Calls {
		calls = append(calls, sdk.NewToolUseBlock(modelhttp.CallID(callPrefix, c.ID), modelhttp.CallArguments(c), modelhttp.CallName(c.Name)))
	}
	if !orderFits(order, len(own), len(calls)) {
		order = strings.Repeat(orderOpaque, len(own)) + orderText + strings.Repeat(orderCall, len(calls))
	}
	var blocks []sdk.ContentBlockParamUnion
	for _, step := range order {
		switch string(step) {
		case orderOpaque:
			blocks, own = append(blocks, own[0]), own[1:]
		case orderCall:
			blocks, calls = append(blocks, calls[0]), calls[1:]
		case orderText:
			if !modelhttp.IsBlank(m.Text) {
				blocks = append(blocks, sdk.NewTextBlock(m.Text))
			}
		}
	}
	// A message without calls that ends in thoughts, as a cut reply may, is refused.
	for n := len(blocks); n > 0 && len(m.Calls) == 0 && (blocks[n-1].OfThinking != nil || blocks[n-1].OfRedactedThinking != nil); n-- {
		blocks = blocks[:n-1]
	}
	return blocks
}

// The order of a reply's blocks is itself kept as an opaque block, one letter
// for each block, unless it is the usual order. All text is in one place, the
// first: the API rejects text after a call.
const (
	orderKind   = "order"
	orderOpaque = "o"
	orderText   = "t"
	orderCall   = "c"
)

// orderFits reports whether an order places every block exactly once.
func orderFits(order string, opaque, calls int) bool {
	return order != "" && strings.Count(order, orderOpaque) == opaque && strings.Count(order, orderCall) == calls &&
		strings.Count(order, orderText) == 1 && len(order) == opaque+calls+1
}

// Kinds of opaque blocks, named as on the wire.
const (
	thinkingKind = "thinking"
	redactedKind = "redacted_thinking"
)

// opaqueBlock is how a thinking block is kept: the fields that go back verbatim.
type opaqueBlock struct {
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

func renderOpaque(o model.Opaque) (sdk.ContentBlockParamUnion, bool) {
	var b opaqueBlock
	if json.Unmarshal(o.Data, &b) != nil {
		return sdk.ContentBlockParamUnion{}, false
	}
	switch o.Kind {
	case thinkingKind:
		return sdk.NewThinkingBlock(b.Signature, b.Thinking), true
	case redactedKind:
		return sdk.NewRedactedThinkingBlock(b.Data), true
	}
	return sdk.ContentBlockParamUnion{}, false
}
