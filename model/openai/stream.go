package openai

import (
	"cmp"
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// chunkReader puts one reply together from the chunks of a stream.
type chunkReader struct {
	emit func(model.Delta)
	said int // deltas

	text    strings.Builder
	calls   modelhttp.CallAssembler
	usage   model.Usage
	counted bool // usage came
	known   bool // it is final: it came with the end of the content or after it
	served  string
	reason  string
	refused bool
	began   bool // a chunk with a choice came
	stopped bool // the provider reported that the reply is whole
}

func newReader(emit func(model.Delta)) *chunkReader {
	if emit == nil {
		emit = func(model.Delta) {}
	}
	r := &chunkReader{}
	r.emit = func(d model.Delta) { r.said++; emit(d) }
	return r
}

// keptSize grows with the part of the reply that is kept.
func (r *chunkReader) keptSize() int { return r.said + r.calls.Size() }

func (r *chunkReader) takeChunk(c *chatChunk) {
	if c.Model != "" {
		r.served = modelhttp.ValidText(string(c.Model))
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index.N != 0 {
			continue // one was asked for
		}
		r.began = true
		r.takeDelta(&choice.Delta)
		if choice.Finish != "" {
			r.reason = string(choice.Finish)
			r.endContent()
		}
	}
	if u := c.Usage; u.Input.Known && u.Output.Known {
		r.usage = splitUsage(u.Input.N, u.Output.N, u.Total.N, u.Of.Cached.N, u.Of.Written.N, u.To.Reasoning.N)
		r.counted, r.known = true, r.stopped // some servers send the usage so far with each chunk
	}
}

func (r *chunkReader) takeDelta(d *chunkDelta) {
	if text := cmp.Or(d.ReasoningContent, d.Reasoning); text != "" {
		r.emit(model.Delta{Kind: model.ReasoningDelta, Text: modelhttp.ValidText(text)})
	}
	if d.Refusal != "" {
		r.refused = true
	}
	if text := modelhttp.ValidText(string(d.Content + d.Refusal)); text != "" {
		r.text.WriteString(text)
		r.emit(model.Delta{Kind: model.TextDelta, Text: text})
	}
	for _, t := range d.ToolCalls {
		r.calls.AddDelta(t.Index.N, string(t.ID), string(t.Function.Name), string(t.Function.Arguments))
	}
}

// endContent notes that nothing of the content is missing.
func (r *chunkReader) endContent() {
	r.stopped = true
	r.calls.EndAll()
}

// endStream notes that the stream has ended by its convention, after the last usage.
func (r *chunkReader) endStream() {
	r.endContent()
	r.known = r.counted
}

// splitUsage converts the counts of either API to usage. OpenAI reports the prompt as one sum,
// and the reasoning within the output. Compatible servers leave the reasoning out
// of the output, but bill it: then only the total includes it.
func splitUsage(prompt, output, total, read, written, thought int64) model.Usage {
	read = min(max(read, 0), prompt)
	written = min(max(written, 0), prompt-read)
	output = max(output, total-prompt)
	return model.Usage{Input: prompt - read - written, Output: output, CacheRead: read, CacheCreation: written, Reasoning: min(max(thought, 0), max(output, 0))}
}

// partialReply returns the part of the reply that has arrived so far.
func (r *chunkReader) partialReply() model.Reply {
	stop := mapStop(r.reason)
	if r.refused && stop == model.StopEnd {
		stop = model.StopRefusal
	}
	return model.Reply{
		Message: model.Message{Role: model.Assistant, Text: r.text.String(), Calls: r.calls.ToolCalls(stop == model.StopMaxOutput)},
		Stop:    stop, Usage: r.usage, UsageKnown: r.known && modelhttp.IsPlausibleUsage(r.usage), Served: r.served,
	}
}

// mapStop names the provider's reason in our words; it decides nothing.
func mapStop(reason string) model.Stop {
	switch reason {
	case "stop":
		return model.StopEnd
	case "tool_calls", "function_call":
		return model.StopTools
	case "length":
		return model.StopMaxOutput
	case "content_filter":
		return model.StopRefusal
	}
	return model.StopUnknown
}
