package anthropic

import (
	"encoding/json"
	"sort"
	"strings"

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

	blocks  map[int64]*receivedBlock
	calls   modelhttp.CallAssembler
	usage   model.Usage
	input   bool // the prompt's part of usage was reported
	output  bool // an output count was reported
	final   bool // it came with the stop reason or after it, or the end marker came
	began   bool // the message began
	served  string
	stop    string
	stopped bool // the provider sent a stop reason: the content is whole
	over    bool // the end marker came
}

// receivedBlock is one content block on its way in.
type receivedBlock struct {
	kind  string
	text  strings.Builder // of text or thinking
	extra strings.Builder // signature, or redacted data
	ended bool
}

func newReader(issuer string, emit func(model.Delta)) *eventReader {
	if emit == nil {
		emit = func(model.Delta) {}
	}
	r := &eventReader{issuer: issuer, blocks: map[int64]*receivedBlock{}}
	r.emit = func(d model.Delta) { r.said++; emit(d) }
	return r
}

// keptSize grows with the part of the reply that is kept.
func (r *eventReader) keptSize() int { return r.said + r.calls.Size() + len(r.blocks) }

func (r *eventReader) takeEvent(e *streamEvent) {
	switch e.Type {
	case "message_start":
		if r.began {
			return // a reply is one message
		}
		r.began = true
		r.served = modelhttp.ValidText(string(e.Message.Model))
		u := e.Message.Usage
		r.input = u.Input.Known
		r.usage = model.Usage{Input: u.Input.N, Output: u.Output.N, CacheRead: u.CacheRead.N, CacheCreation: u.CacheWrite.N}
	case "content_block_start":
		r.beginBlock(e)
	case "content_block_delta":
		r.takeDelta(e)
	case "content_block_stop":
		if b := r.blocks[e.Index.N]; b != nil {
			b.ended = true
			r.calls.EndCall(e.Index.N)
		}
	case "message_delta":
		r.finishReply(e)
	case "message_stop":
		r.stopped, r.over, r.final = true, true, true
	}
}

func (r *eventReader) beginBlock(e *streamEvent) {
	if r.blocks[e.Index.N] != nil || len(r.blocks) >= maxBlocks {
		return
	}
	c := &e.Block
	b := &receivedBlock{kind: string(c.Type)}
	b.extra.WriteString(string(c.Signature))
	r.blocks[e.Index.N] = b
	switch c.Type {
	case typeToolUse:
		// The arguments stream as deltas; a server that does not stream puts
		// them here. An empty object is the usual placeholder.
		args := string(c.Input)
		if args == "null" || strings.ReplaceAll(args, " ", "") == "{}" {
			args = ""
		}
		r.calls.AddDelta(e.Index.N, "", string(c.Name), args)
	case typeText:
		r.emitText(b, model.TextDelta, c.Text)
	case thinkingKind:
		r.emitText(b, model.ReasoningDelta, c.Thinking)
	case redactedKind:
		b.extra.Reset()
		b.extra.WriteString(string(c.Data))
	}
}

func (r *eventReader) takeDelta(e *streamEvent) {
	b := r.blocks[e.Index.N]
	if b == nil || b.ended {
		return
	}
	switch d := &e.Delta; d.Type {
	case "text_delta":
		r.emitText(b, model.TextDelta, d.Text)
	case "thinking_delta":
		r.emitText(b, model.ReasoningDelta, d.Thinking)
	case "signature_delta":
		b.extra.WriteString(string(d.Signature))
	case "input_json_delta":
		if b.kind == typeToolUse {
			r.calls.AddDelta(e.Index.N, "", "", string(d.PartialJSON))
		}
	}
}

func (r *eventReader) emitText(b *receivedBlock, kind model.DeltaKind, said modelhttp.Text) {
	if text := modelhttp.ValidText(string(said)); text != "" {
		b.text.WriteString(text)
		r.emit(model.Delta{Kind: kind, Text: text})
	}
}

// finishReply reads the final counts; they are cumulative, and a missing count stays unchanged.
func (r *eventReader) finishReply(e *streamEvent) {
	if e.Delta.StopReason != "" {
		r.stop, r.stopped = string(e.Delta.StopReason), true
	}
	u := &e.Usage
	if u.Input.Known {
		r.usage.Input, r.input = u.Input.N, true
	}
	if u.CacheRead.Known {
		r.usage.CacheRead = u.CacheRead.N
	}
	if u.CacheWrite.Known {
		r.usage.CacheCreation = u.CacheWrite.N
	}
	r.usage.Reasoning = min(max(u.Of.Thinking.N, 0), max(u.Output.N, 0))
	if u.Output.Known {
		r.usage.Output, r.output, r.final = u.Output.N, true, r.stopped
	}
}

// partialReply returns the part of the reply that has arrived so far.
func (r *eventReader) partialReply() model.Reply {
	m := model.Message{Role: model.Assistant, Calls: r.calls.ToolCalls(mapStop(r.stop) == model.StopMaxOutput)}
	var order strings.Builder
	var texts []string
	for _, i := range r.blockIndexes() {
		switch b := r.blocks[i]; b.kind {
		case typeText:
			if b.text.Len() > 0 {
				if texts = append(texts, b.text.String()); len(texts) == 1 {
					order.WriteString(orderText)
				}
			}
		case typeToolUse:
			order.WriteString(orderCall)
		case thinkingKind, redactedKind:
			// Half a block has no signature, and would be refused.
			if b.ended && b.extra.Len() > 0 {
				m.Opaque = append(m.Opaque, model.Opaque{Issuer: r.issuer, Kind: b.kind, Data: b.keepBlock()})
				order.WriteString(orderOpaque)
			}
		}
	}
	m.Text = strings.Join(texts, "\n\n")
	if o := placeText(order.String()); isInterleaved(o) {
		m.Opaque = append(m.Opaque, model.Opaque{Issuer: r.issuer, Kind: orderKind, Data: []byte(o)})
	}
	return model.Reply{Message: m, Stop: mapStop(r.stop), Usage: r.usage, UsageKnown: r.input && r.output && r.final && modelhttp.IsPlausibleUsage(r.usage), Served: r.served}
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
func (b *receivedBlock) keepBlock() []byte {
	o := opaqueBlock{Thinking: b.text.String(), Signature: b.extra.String()}
	if b.kind == redactedKind {
		o = opaqueBlock{Data: b.extra.String()}
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
func mapStop(reason string) model.Stop {
	switch reason {
	case "end_turn", "stop_sequence":
		return model.StopEnd
	case "tool_use":
		return model.StopTools
	case "max_tokens", "model_context_window_exceeded":
		return model.StopMaxOutput
	case "refusal":
		return model.StopRefusal
	}
	return model.StopUnknown
}
