package anthropic

import (
	"encoding/json"
	"sort"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// maxBlocks bounds the content blocks of one reply; later blocks are dropped.
const maxBlocks = 4096

// eventReader puts one reply together from the events of a stream.
type eventReader struct {
	emit   func(model.Delta)
	said   int // deltas
	issuer string

	blocks  map[int64]*contentBlock
	calls   modelhttp.CallAssembler
	usage   model.Usage
	input   bool // the prompt's part of usage was reported
	output  bool // the final output count was reported
	served  string
	stop    sdk.StopReason
	stopped bool // the provider sent a stop reason: the content is whole
	over    bool // the end marker came
}

// contentBlock is one content block on its way in.
type contentBlock struct {
	kind  string
	text  strings.Builder // of text or thinking
	extra string          // signature, or redacted data
	ended bool
}

func newReader(issuer string, emit func(model.Delta)) *eventReader {
	if emit == nil {
		emit = func(model.Delta) {}
	}
	r := &eventReader{issuer: issuer, blocks: map[int64]*contentBlock{}}
	r.emit = func(d model.Delta) { r.said++; emit(d) }
	return r
}

// keptSize grows with the part of the reply that is kept.
func (r *eventReader) keptSize() int { return r.said + r.calls.Size() + len(r.blocks) }

func (r *eventReader) takeEvent(e sdk.MessageStreamEventUnion) {
	switch e.Type {
	case "message_start":
		r.served = validText(e.Message.Model)
		u := e.Message.Usage
		r.input = u.JSON.InputTokens.Valid()
		r.usage = model.Usage{Input: u.InputTokens, Output: u.OutputTokens,
			CacheRead: u.CacheReadInputTokens, CacheCreation: u.CacheCreationInputTokens}
	case "content_block_start":
		r.beginBlock(e)
	case "content_block_delta":
		r.takeDelta(e)
	case "content_block_stop":
		if b := r.blocks[e.Index]; b != nil {
			b.ended = true
			r.calls.EndCall(e.Index)
		}
	case "message_delta":
		r.finishReply(e)
	case "message_stop":
		r.stopped, r.over = true, true
	}
}

func (r *eventReader) beginBlock(e sdk.MessageStreamEventUnion) {
	if r.blocks[e.Index] != nil || len(r.blocks) >= maxBlocks {
		return
	}
	c := e.ContentBlock
	b := &contentBlock{kind: c.Type, extra: c.Signature}
	r.blocks[e.Index] = b
	switch c.Type {
	case "tool_use":
		// The arguments stream as deltas; a server that does not stream puts
		// them here. An empty object is the usual placeholder.
		args := c.JSON.Input.Raw()
		if args == "null" || strings.ReplaceAll(args, " ", "") == "{}" {
			args = ""
		}
		r.calls.AddDelta(e.Index, "", c.Name, args)
	case "text":
		r.emitText(b, model.TextDelta, c.Text)
	case thinkingKind:
		r.emitText(b, model.ReasoningDelta, c.Thinking)
	case redactedKind:
		b.extra = c.Data
	}
}

func (r *eventReader) takeDelta(e sdk.MessageStreamEventUnion) {
	b := r.blocks[e.Index]
	if b == nil || b.ended {
		return
	}
	switch d := e.Delta; d.Type {
	case "text_delta":
		r.emitText(b, model.TextDelta, d.Text)
	case "thinking_delta":
		r.emitText(b, model.ReasoningDelta, d.Thinking)
	case "signature_delta":
		b.extra += d.Signature
	case "input_json_delta":
		if b.kind == "tool_use" {
			r.calls.AddDelta(e.Index, "", "", d.PartialJSON)
		}
	}
}

func (r *eventReader) emitText(b *contentBlock, kind model.DeltaKind, text string) {
	if text = validText(text); text != "" {
		b.text.WriteString(text)
		r.emit(model.Delta{Kind: kind, Text: text})
	}
}

// finishReply reads the final counts; they are cumulative, and a missing count stays unchanged.
func (r *eventReader) finishReply(e sdk.MessageStreamEventUnion) {
	if e.Delta.StopReason != "" {
		r.stop, r.stopped = e.Delta.StopReason, true
	}
	u := e.Usage
	if u.JSON.InputTokens.Valid() {
		r.usage.Input, r.input = u.InputTokens, true
	}
	if u.JSON.CacheReadInputTokens.Valid() {
		r.usage.CacheRead = u.CacheReadInputTokens
	}
	if u.JSON.CacheCreationInputTokens.Valid() {
		r.usage.CacheCreation = u.CacheCreationInputTokens
	}
	r.usage.Reasoning = min(max(u.OutputTokensDetails.ThinkingTokens, 0), max(u.OutputTokens, 0))
	if u.JSON.OutputTokens.Valid() {
		r.usage.Output, r.output = u.OutputTokens, true
	}
}

// partialReply returns the part of the reply that has arrived so far.
func (r *eventReader) partialReply() model.Reply {
	m := model.Message{Role: model.Assistant, Calls: r.calls.ToolCalls(mapStop(r.stop) == model.StopMaxOutput)}
	var order strings.Builder
	var texts []string
	for _, i := range r.blockIndexes() {
		switch b := r.blocks[i]; b.kind {
		case "text":
			if b.text.Len() > 0 {
				if texts = append(texts, b.text.String()); len(texts) == 1 {
					order.WriteString(orderText)
				}
			}
		case "tool_use":
			order.WriteString(orderCall)
		case thinkingKind, redactedKind:
			// Half a block has no signature, and would be refused.
			if b.ended && b.extra != "" {
				m.Opaque = append(m.Opaque, model.Opaque{Issuer: r.issuer, Kind: b.kind, Data: b.keepBlock()})
				order.WriteString(orderOpaque)
			}
		}
	}
	m.Text = strings.Join(texts, "\n\n")
	if o := placeText(order.String()); isInterleaved(o) {
		m.Opaque = append(m.Opaque, model.Opaque{Issuer: r.issuer, Kind: orderKind, Data: []byte(o)})
	}
	return model.Reply{Message: m, Stop: mapStop(r.stop), Usage: r.usage, UsageKnown: r.input && r.output && modelhttp.IsPlausibleUsage(r.usage), Served: r.served}
}

func (r *eventReader) blockIndexes() []int64 {
	var list []int64
	for i := range r.blocks {
		list = append(list, i)
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list
}

// keepBlock is the block as it goes back.
func (b *contentBlock) keepBlock() []byte {
	o := opaqueBlock{Thinking: b.text.String(), Signature: b.extra}
	if b.kind == redactedKind {
		o = opaqueBlock{Data: b.extra}
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil // a struct of strings always encodes
	}
	return data
}

// placeText puts the text where it may stand: before the first call.
func placeText(order string) string {
	rest := strings.ReplaceAll(order, orderText, "")
	at := strings.Index(order, orderText)
	call := strings.Index(order, orderCall)
	if call >= 0 && (at < 0 || at > call) {
		at = call
	} else if at < 0 {
		at = len(rest)
	}
	return rest[:at] + orderText + rest[at:]
}

// isInterleaved reports whether an order is not plain: opaque, text, calls.
func isInterleaved(order string) bool {
	return strings.Trim(strings.TrimLeft(order, orderOpaque), orderText) != strings.Repeat(orderCall, strings.Count(order, orderCall))
}

// mapStop names the provider's reason in our words; it decides nothing.
func mapStop(s sdk.StopReason) model.Stop {
	switch s {
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence:
		return model.StopEnd
	case sdk.StopReasonToolUse:
		return model.StopTools
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return model.StopMaxOutput
	case sdk.StopReasonRefusal:
		return model.StopRefusal
	}
	return model.StopUnknown
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
