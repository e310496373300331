package openai

import (
	"encoding/json"
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// errorResponse returns the error of an event in the form of an error response; nil if the
// event is not an error.
func (e *responseEvent) errorResponse(data []byte) []byte {
	switch {
	case e.Type == "response.failed" && e.Response != nil && !modelhttp.IsNoError(e.Response.Error):
		data, err := json.Marshal(map[string]json.RawMessage{"error": e.Response.Error})
		if err != nil {
			return []byte("{}") // raw JSON that was decoded encodes
		}
		return data
	case e.Type == "response.failed":
		return []byte("{}")
	case !modelhttp.IsNoError(e.Error):
		return data
	case e.Type == "error":
		flat, err := json.Marshal(map[string]any{"error": map[string]any{"code": e.Code, "message": e.Message}})
		if err != nil {
			return []byte("{}") // what was decoded encodes
		}
		return flat
	}
	return nil
}

// responseListener puts one reply together from the events of a stream.
type responseListener struct {
	emit   func(model.Delta)
	said   int // deltas
	issuer string

	items   []*replyItem
	at      map[int64]*replyItem // the latest of a place
	calls   modelhttp.CallAssembler
	usage   model.Usage
	known   bool
	served  string
	reason  string // why it is not whole
	refused bool
	stopped bool // the provider reported that the reply is over
}

// replyItem is one item on its way in.
type replyItem struct {
	kind    string
	phase   string
	text    strings.Builder
	call    int64 // its place among the calls
	args    bool  // some of its arguments came
	thought *reasoningItem
	ended   bool
}

func newListener(issuer string, emit func(model.Delta)) *responseListener {
	if emit == nil {
		emit = func(model.Delta) {}
	}
	r := &responseListener{issuer: issuer, at: map[int64]*replyItem{}}
	r.emit = func(d model.Delta) { r.said++; emit(d) }
	return r
}

// keptSize grows with the part of the reply that is kept.
func (r *responseListener) keptSize() int { return r.said + r.calls.Size() + len(r.items) }

func (r *responseListener) takeEvent(e *responseEvent) {
	switch e.Type {
	case "response.output_item.added":
		if e.Item != nil {
			r.beginItem(e.Index.N, *e.Item)
		}
	case "response.output_text.delta":
		r.emitText(r.itemAt(e.Index.N, itemMessage), string(e.Delta))
	case "response.refusal.delta":
		r.refused = true
		r.emitText(r.itemAt(e.Index.N, itemMessage), string(e.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		if t := string(e.Delta); t != "" {
			r.emit(model.Delta{Kind: model.ReasoningDelta, Text: t})
		}
	case "response.function_call_arguments.delta":
		if it := r.at[e.Index.N]; it != nil && it.kind == itemCall && !it.ended {
			it.args = true
			r.calls.AddDelta(it.call, "", "", string(e.Delta))
		}
	case "response.output_item.done":
		if e.Item != nil {
			r.finishItem(e.Index.N, *e.Item)
		}
	case "response.completed", "response.incomplete":
		r.takeEnd(e.Response)
	}
	if e.Response != nil && e.Response.Model != "" {
		r.served = string(e.Response.Model)
	}
}

// takeEnd takes the end of a reply. A server that streams no items has them there.
func (r *responseListener) takeEnd(res *responseState) {
	if res == nil {
		r.endReply("")
		return
	}
	if len(r.items) == 0 {
		for i, it := range res.Output {
			r.finishItem(int64(i), it)
		}
	}
	r.countUsage(res)
	reason := string(res.Incomplete.Reason)
	if reason == "" && res.Status == itemNotWhole {
		reason = reasonLimit // a server that does not say why means the limit
	}
	r.endReply(reason)
}

// beginItem begins an item. At a place whose item is over, it is another one.
func (r *responseListener) beginItem(index int64, o outputItem) *replyItem {
	if it := r.at[index]; it != nil && !it.ended || len(r.items) >= maxItems || r.calls.Len() >= modelhttp.MaxCalls {
		return it
	}
	it := &replyItem{kind: string(o.Type), phase: string(o.Phase)}
	if o.Type == itemCall {
		it.call = int64(r.calls.Len())
		r.calls.AddDelta(it.call, "", string(o.Name), "")
	}
	r.items, r.at[index] = append(r.items, it), it
	return it
}

// itemAt is the item of a kind at a place, which a server may not have begun; nil
// if another stands there.
func (r *responseListener) itemAt(index int64, kind string) *replyItem {
	it := r.at[index]
	if it == nil {
		it = r.beginItem(index, outputItem{Type: modelhttp.Text(kind)})
	}
	if it == nil || it.kind != kind {
		return nil
	}
	return it
}

func (r *responseListener) emitText(it *replyItem, text string) {
	if it != nil && !it.ended && text != "" {
		it.text.WriteString(text)
		r.emit(model.Delta{Kind: model.TextDelta, Text: text})
	}
}

// finishItem takes a whole item, and from it what had not come in pieces.
func (r *responseListener) finishItem(index int64, o outputItem) {
	it := r.itemAt(index, string(o.Type))
	if it == nil || it.ended {
		return
	}
	switch o.Type {
	case itemMessage:
		if o.Phase != "" {
			it.phase = string(o.Phase)
		}
		came := it.text.Len() > 0
		for _, c := range o.Content {
			r.refused = r.refused || c.Refusal != ""
			if !came {
				r.emitText(it, string(c.Text+c.Refusal))
			}
		}
	case itemCall:
		if !it.args {
			r.calls.AddDelta(it.call, "", string(o.Name), string(o.Arguments))
		}
		if o.Status != itemNotWhole {
			r.calls.EndCall(it.call)
		}
	case itemThought:
		if o.ID != "" && o.Encrypted != "" {
			it.thought = &reasoningItem{ID: string(o.ID), Encrypted: string(o.Encrypted)}
			for _, s := range o.Summary {
				it.thought.Summary = append(it.thought.Summary, string(s.Text))
			}
		}
	}
	it.ended = true
}

// endReply notes that nothing more comes, and why.
func (r *responseListener) endReply(reason string) {
	r.stopped, r.reason = true, reason
	r.calls.EndAll()
}

// countUsage takes the usage of a response.
func (r *responseListener) countUsage(res *responseState) {
	if res == nil || !res.Usage.Input.Known || !res.Usage.Output.Known {
		return
	}
	u := res.Usage
	r.known, r.usage = true, splitUsage(u.Input.N, u.Output.N, u.Total.N, u.Of.Cached.N, u.Of.Written.N, u.To.Reasoning.N)
}

// partialReply returns the part of the reply that has arrived so far.
func (r *responseListener) partialReply() model.Reply {
	var texts []string
	var steps []itemStep
	for _, it := range r.items {
		switch said := it.text.String(); {
		case it.kind == itemCall:
			steps = append(steps, itemStep{Call: true})
		case it.thought != nil:
			steps = append(steps, itemStep{Thought: it.thought})
		case !modelhttp.IsBlank(said):
			texts = append(texts, said)
			steps = append(steps, itemStep{Text: len(said), Phase: it.phase})
		}
	}
	stop := r.stopReason()
	m := model.Message{Role: model.Assistant, Text: strings.Join(texts, between),
		Calls: r.calls.ToolCalls(stop == model.StopMaxOutput), Opaque: keepOrder(steps, r.issuer)}
	return model.Reply{Message: m, Stop: stop, Usage: r.usage, UsageKnown: r.known && modelhttp.IsPlausibleUsage(r.usage), Served: r.served}
}

// stopReason names in our words why a reply ended; it decides nothing.
func (r *responseListener) stopReason() model.Stop {
	switch {
	case r.reason == reasonLimit:
		return model.StopMaxOutput
	case r.reason == "content_filter", r.stopped && r.refused && r.reason == "":
		return model.StopRefusal
	case !r.stopped, r.reason != "":
		return model.StopUnknown
	case r.calls.Len() > 0:
		return model.StopTools
	}
	return model.StopEnd
}
