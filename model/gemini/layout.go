package gemini

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// layoutKind is the kind of the one opaque block of a reply. Google requires every
// signature back in the same part that it came in, so the block keeps the order
// of the parts, and the data that only Google understands.
const layoutKind = "parts"

// maxSteps bounds the parts of one reply whose order is kept.
const maxSteps = 4096

// partStep is one part of a reply: a stretch of its text, the next of its calls, or
// a thought.
type partStep struct {
	Text      int    `json:"text,omitempty"` // in bytes
	Call      bool   `json:"call,omitempty"`
	Thought   string `json:"thought,omitempty"`
	IsThought bool   `json:"is_thought,omitempty"`
	Signature string `json:"thoughtSignature,omitempty"`
}

// keepLayout returns the layout as an opaque block; nil if the text and the calls already
// imply it: one stretch of text, then calls, all of them unsigned.
func keepLayout(steps []partStep, issuer string) []model.Opaque {
	telling := false
	for i, s := range steps {
		telling = telling || s.Signature != "" || s.IsThought || !s.Call && i > 0
	}
	if !telling || len(steps) > maxSteps {
		return nil
	}
	data, err := json.Marshal(steps)
	if err != nil {
		return nil // strings and numbers always encode
	}
	return []model.Opaque{{Issuer: issuer, Kind: layoutKind, Data: data}}
}

// keptLayout returns the layout that was kept with a message for this issuer.
func keptLayout(m model.Message, issuer string) []partStep {
	for _, o := range m.Opaque {
		var steps []partStep
		if o.Issuer == issuer && o.Kind == layoutKind && json.Unmarshal(o.Data, &steps) == nil {
			return steps
		}
	}
	return nil
}

// unsigned replaces, by Google's documentation, the signature of a call that
// another model made, or that was lost: newer models refuse a call without a signature.
const unsigned = "skip_thought_signature_validator"

// assistantParts renders an assistant message in the order it came in. If it was
// changed since, it is rendered as text and calls, with the calls' signatures.
func assistantParts(m model.Message, name string) []contentPart {
	steps := keptLayout(m, Provider+"/"+name)
	if !layoutFits(steps, m) {
		steps = plainLayout(steps, m)
	}
	var parts []contentPart
	text, calls := m.Text, m.Calls
	for _, s := range steps {
		p := contentPart{Signature: s.Signature}
		switch {
		case s.Call:
			c := calls[0]
			calls = calls[1:]
			p.Call = &functionCall{ID: modelhttp.CallID(callPrefix, c.ID), Name: callName(c.Name), Args: modelhttp.CallArguments(c)}
			if first := len(calls) == len(m.Calls)-1; first && p.Signature == "" && requiresSignatures(name) {
				p.Signature = unsigned
			}
		case s.IsThought:
			p.Text, p.Thought = &s.Thought, true
		default:
			said := text[:s.Text]
			text = text[s.Text:]
			if modelhttp.IsBlank(said) && p.Signature == "" {
				continue
			}
			p.Text = &said
		}
		parts = append(parts, p)
	}
	return parts
}

// requiresSignatures reports whether a model refuses calls without a signature.
func requiresSignatures(name string) bool {
	return strings.HasPrefix(name, "gemini-") && !strings.HasPrefix(name, "gemini-1") && !strings.HasPrefix(name, "gemini-2")
}

// layoutFits reports whether a layout places the whole text and every call once.
func layoutFits(steps []partStep, m model.Message) bool {
	text, calls := m.Text, 0
	for _, s := range steps {
		if s.Text < 0 || s.Text > len(text) || !utf8.ValidString(text[:s.Text]) && utf8.ValidString(text) {
			return false
		}
		text = text[s.Text:]
		if s.Call {
			calls++
		}
	}
	return text == "" && calls == len(m.Calls)
}

// plainLayout lays a message out as text and calls; the calls keep their signatures
// by their place.
func plainLayout(steps []partStep, m model.Message) []partStep {
	out := []partStep{{Text: len(m.Text)}}
	for range m.Calls {
		s := partStep{Call: true}
		for len(steps) > 0 {
			next := steps[0]
			steps = steps[1:]
			if next.Call {
				s.Signature = next.Signature
				break
			}
		}
		out = append(out, s)
	}
	return out
}
