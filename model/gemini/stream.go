package gemini

import (
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// eventReader puts one reply together from the events of a stream.
type eventReader struct {
	emit   func(model.Delta)
	said   int // deltas
	issuer string

	text    strings.Builder
	calls   modelhttp.CallAssembler
	thought strings.Builder // of the last step, if it is a thought
	steps   []partStep
	usage   model.Usage
	known   bool // usage came with the end or after it: before, it is not final
	served  string
	reason  string
	refused bool // the prompt was blocked
	stopped bool // the provider reported that the reply is whole
}

func newReader(issuer string, emit func(model.Delta)) *eventReader {
	if emit == nil {
		emit = func(model.Delta) {}
	}
	r := &eventReader{issuer: issuer}
	r.emit = func(d model.Delta) { r.said++; emit(d) }
	return r
}

// keptSize grows with the part of the reply that is kept.
func (r *eventReader) keptSize() int { return r.said + r.calls.Size() + len(r.steps) }

func (r *eventReader) takeEvent(e streamEvent) {
	if e.Version != "" {
		r.served = string(e.Version)
	}
	for _, c := range e.Candidates {
		if c.Index.N != 0 {
			continue // one was asked for
		}
		for _, p := range c.Content.Parts {
			r.takePart(p)
		}
		if c.Finish != "" {
			r.reason = string(c.Finish)
			r.endContent()
		}
	}
	if e.Feedback.Block != "" {
		r.refused = true
		r.endContent()
	}
	if e.Usage != nil {
		r.usage, r.known = splitUsage(*e.Usage), r.stopped
	}
}

// endContent notes that nothing of the content is missing.
func (r *eventReader) endContent() {
	r.stopped = true
	r.calls.EndAll()
}

// takePart takes one part. A stretch of text comes in many; one that was signed is
// over, and one that is signed stays on its own.
func (r *eventReader) takePart(p receivedPart) {
	next := partStep{Signature: string(p.Signature)}
	text := ""
	switch {
	case p.Call != nil:
		if r.calls.Len() >= modelhttp.MaxCalls {
			return
		}
		args := string(p.Call.Args)
		if args == "null" {
			args = ""
		}
		// Every call arrives whole, so each has an index of its own.
		r.calls.AddDelta(int64(r.calls.Len()), "", string(p.Call.Name), args)
		next.Call = true
	case p.Text == nil && p.Signature == "":
		return // a kind of part that the request did not ask for
	case p.Thought:
		next.IsThought = true
		if p.Text != nil {
			text = string(*p.Text)
		}
		r.emitText(model.ReasoningDelta, text)
	case p.Text != nil:
		text = string(*p.Text)
		next.Text = len(text)
		r.text.WriteString(text)
		r.emitText(model.TextDelta, text)
	}
	r.placeStep(next, text)
}

func (r *eventReader) emitText(kind model.DeltaKind, text string) {
	if text != "" {
		r.emit(model.Delta{Kind: kind, Text: text})
	}
}

// placeStep appends a step, or extends the previous one.
func (r *eventReader) placeStep(next partStep, text string) {
	if next.Text == 0 && next.Signature == "" && !next.Call && text == "" {
		return
	}
	if n := len(r.steps); n > 0 {
		last := &r.steps[n-1]
		if !last.Call && !next.Call && last.IsThought == next.IsThought && last.Signature == "" && next.Signature == "" {
			last.Text += next.Text
			if next.IsThought {
				r.thought.WriteString(text)
			}
			return
		}
		r.storeThoughts()
	}
	if len(r.steps) <= maxSteps { // one more than the limit: then keepLayout drops the layout
		r.steps = append(r.steps, next)
	}
	if next.IsThought {
		r.thought.WriteString(text)
	}
}

// storeThoughts stores the collected thoughts in the last step.
func (r *eventReader) storeThoughts() {
	if n := len(r.steps); n > 0 && r.steps[n-1].IsThought && r.steps[n-1].Thought == "" {
		r.steps[n-1].Thought = r.thought.String()
	}
	r.thought.Reset()
}

// splitUsage splits the prompt, which Google reports as one sum, into its parts, and adds
// the thinking tokens to the output. Google does not bill writes to a cache.
func splitUsage(c usageCounts) model.Usage {
	read := min(max(c.Cached.N, 0), c.Prompt.N)
	return model.Usage{Input: c.Prompt.N - read + c.ToolUse.N, Output: c.Candidates.N + c.Thoughts.N, CacheRead: read, Reasoning: max(c.Thoughts.N, 0)}
}

// partialReply returns the part of the reply that has arrived so far.
func (r *eventReader) partialReply() model.Reply {
	r.storeThoughts()
	m := model.Message{Role: model.Assistant, Text: r.text.String(), Calls: r.calls.ToolCalls(false), Opaque: keepLayout(r.steps, r.issuer)}
	stop := mapStop(r.reason)
	switch {
	case r.refused:
		stop = model.StopRefusal
	case stop == model.StopEnd && len(m.Calls) > 0:
		stop = model.StopTools // it has no word of its own for that
	}
	return model.Reply{Message: m, Stop: stop, Usage: r.usage, UsageKnown: r.known && modelhttp.IsPlausibleUsage(r.usage), Served: r.served}
}

// mapStop names the provider's reason in our words; it decides nothing.
func mapStop(reason string) model.Stop {
	switch reason {
	case "STOP":
		return model.StopEnd
	case "MAX_TOKENS":
		return model.StopMaxOutput
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		return model.StopRefusal
	}
	// MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, LANGUAGE, OTHER and what
	// may come: the reply is what there is of it.
	return model.StopUnknown
}
