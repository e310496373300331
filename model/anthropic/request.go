package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// callPrefix begins the ids of calls on the wire.
const callPrefix = "toolu_"

// renderRequest renders a request for the wire. With drop, it asks to leave out the thoughts
// that are bound to another beginning.
func renderRequest(req model.Request, cache, drop bool) ([]byte, error) {
	messages, err := modelhttp.SendableWithMedia(req)
	if err != nil {
		return nil, err
	}
	b := requestBody{Model: req.Model, MaxTokens: req.MaxOutput, Stream: true, System: systemBlocks(req, cache),
		Messages: chatMessages(messages, Provider+"/"+req.Model), ToolChoice: renderChoice(req), OutputConfig: renderOutput(req)}
	if len(b.Messages) == 0 {
		return nil, modelhttp.UnsentError("every message is empty")
	}
	for _, t := range req.Tools {
		schema, err := modelhttp.ToolSchema(t)
		if err != nil {
			return nil, err
		}
		b.Tools = append(b.Tools, toolDeclaration{t.Name, t.Description, schema})
	}
	if req.Temperature != nil && (!strings.HasPrefix(req.Model, ours) || modelhttp.IsOfFamily(req.Model, tempered)) {
		b.Temperature = req.Temperature
	}
	if drop {
		b.Thinking = &dropStale
	}
	if cache {
		setBreakpoints(b.Messages)
	}
	return modelhttp.EncodeBody(b)
}

// renderOutput renders the effort, and the schema of the answer where the API can enforce it;
// elsewhere the API rejects a schema. It returns nil if there is neither.
func renderOutput(req model.Request) *outputConfig {
	var out outputConfig
	if !modelhttp.IsOfFamily(req.Model, withoutEffort) {
		out.Effort = req.Effort
	}
	if s, ok := modelhttp.ConstrainSchema(req.Schema, false); ok && modelhttp.ToolChoice(req) == "" &&
		strings.HasPrefix(req.Model, ours) && !modelhttp.IsOfFamily(req.Model, withoutForm) {
		out.Format = &answerFormat{"json_schema", s}
	}
	if out == (outputConfig{}) {
		return nil
	}
	return &out
}

// ephemeral marks the end of a prefix that the provider caches.
var ephemeral = cacheControl{Type: "ephemeral"}

func textBlock(text string) contentBlock { return contentBlock{Type: typeText, Text: text} }

// systemBlocks renders the stable part of the system prompt, the breakpoint of the
// cache, and behind it the part that may change.
func systemBlocks(req model.Request, cache bool) []contentBlock {
	var blocks []contentBlock
	if !modelhttp.IsBlank(req.System) {
		b := textBlock(req.System)
		if cache {
			b.Cache = &ephemeral
		}
		blocks = append(blocks, b)
	}
	if !modelhttp.IsBlank(req.Dynamic) {
		blocks = append(blocks, textBlock(req.Dynamic))
	}
	return blocks
}

// lateBreakpoints is how many of the newest user messages end a cached
// prefix: the newest one for the next request, and the one before it because it ended
// the prefix of the last request. The API allows four breakpoints in all.
const lateBreakpoints = 2

func setBreakpoints(messages []chatMessage) {
	left := lateBreakpoints
	for i := len(messages) - 1; i >= 0 && left > 0; i-- {
		if m := messages[i]; m.Role == roleUser {
			m.Content[len(m.Content)-1].Cache = &ephemeral
			left--
		}
	}
}

// renderChoice renders the tool choice; nil leaves it free. A thinking model may refuse a
// forced choice: the newer models always do, and others if the transcript contains their
// thinking. For such a model the choice is left free.
func renderChoice(req model.Request) *toolChoice {
	forced := modelhttp.ToolChoice(req)
	switch {
	case req.NoTools && len(req.Tools) > 0:
		return &toolChoice{Type: "none"}
	case forced == "" || modelhttp.IsOfFamily(req.Model, unforced) || hasThought(req):
		return nil
	case forced == model.ChoiceAny:
		return &toolChoice{Type: "any"}
	}
	return &toolChoice{Type: "tool", Name: forced}
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
func chatMessages(messages []model.Message, issuer string) []chatMessage {
	var out []chatMessage
	for _, m := range messages {
		role, blocks := roleUser, userBlocks(m)
		if m.Role == model.Assistant {
			role, blocks = roleAssistant, assistantBlocks(m, issuer)
		}
		if len(blocks) == 0 {
			continue // the API rejects an empty message, which has no content anyway
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, chatMessage{Role: role, Content: blocks})
	}
	return out
}

// userBlocks renders a user or a tool message. Results come first: the API wants them
// directly after the calls.
func userBlocks(m model.Message) []contentBlock {
	var blocks []contentBlock
	for _, r := range m.Results {
		b := contentBlock{Type: typeToolResult, ToolUseID: modelhttp.CallID(callPrefix, r.Call), IsError: r.Error}
		if !modelhttp.IsBlank(r.Text) {
			b.Content = []contentBlock{textBlock(r.Text)}
		}
		blocks = append(blocks, b)
	}
	blocks = append(blocks, mediaBlocks(m)...)
	if !modelhttp.IsBlank(m.Text) {
		blocks = append(blocks, textBlock(m.Text))
	}
	return blocks
}

// assistantBlocks renders an assistant message in its original order: opaque blocks,
// text, calls, unless an order block records that they were interleaved.
func assistantBlocks(m model.Message, issuer string) []contentBlock {
	var own []contentBlock
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
	var calls []contentBlock
	for _, c := range m.Calls {
		calls = append(calls, contentBlock{Type: typeToolUse, ID: modelhttp.CallID(callPrefix, c.ID), Name: modelhttp.CallName(c.Name), Input: modelhttp.CallArguments(c)})
	}
	if !orderFits(order, len(own), len(calls)) {
		order = strings.Repeat(orderOpaque, len(own)) + orderText + strings.Repeat(orderCall, len(calls))
	}
	var blocks []contentBlock
	for _, step := range order {
		switch string(step) {
		case orderOpaque:
			blocks, own = append(blocks, own[0]), own[1:]
		case orderCall:
			blocks, calls = append(blocks, calls[0]), calls[1:]
		case orderText:
			if !modelhttp.IsBlank(m.Text) {
				blocks = append(blocks, textBlock(m.Text))
			}
		}
	}
	// A message without calls that ends in thoughts, as a cut reply may, is refused.
	for n := len(blocks); n > 0 && len(m.Calls) == 0 && (blocks[n-1].Type == thinkingKind || blocks[n-1].Type == redactedKind); n-- {
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

func renderOpaque(o model.Opaque) (contentBlock, bool) {
	var b opaqueBlock
	if json.Unmarshal(o.Data, &b) != nil {
		return contentBlock{}, false
	}
	switch o.Kind {
	case thinkingKind:
		return contentBlock{Type: thinkingKind, Thinking: &b.Thinking, Signature: &b.Signature}, true
	case redactedKind:
		return contentBlock{Type: redactedKind, Data: &b.Data}, true
	}
	return contentBlock{}, false
}
