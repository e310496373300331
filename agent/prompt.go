package agent

import (
	"slices"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// Prompt is the transcript as it is sent: without tombstones, and with
// neighbouring user messages joined, so that roles alternate.
func (s State) Prompt() []model.Message {
	plain := true
	for i, m := range s.History {
		if m.Tombstone || i > 0 && m.Role == model.User && s.History[i-1].Role == model.User {
			plain = false
			break
		}
	}
	if plain {
		return slices.Clip(s.History)
	}
	sent := make([]model.Message, 0, len(s.History))
	for _, m := range s.History {
		if m.Tombstone {
			continue
		}
		if n := len(sent); n > 0 && m.Role == model.User && sent[n-1].Role == model.User {
			sent[n-1].Text += "\n\n" + m.Text
			continue
		}
		sent = append(sent, m)
	}
	return sent
}

// anchored reports whether a part of the prompt has a size that the provider of
// the model in use reported.
func (s State) anchored() bool { return s.Anchor.Tokens > 0 && s.Anchor.Route == s.Route }

// InputBound is an upper bound of the tokens of the next prompt: what the
// provider reported for the prefix, and the bytes of the rest.
func (s State) InputBound() int64 {
	var n int64
	if s.anchored() && s.Rounds.Sent == nil {
		n = s.Anchor.Tokens
		for _, m := range s.History[s.Anchor.Messages:] {
			n += budget.Message(m)
		}
	} else {
		n = budget.EnvelopeTokens + budget.Text(s.Task.System) + budget.Text(s.dynamic()) + budget.Tools(s.Task.Tools)
		for _, m := range s.sent() {
			n += budget.Message(m)
		}
	}
	return n + budget.EnvelopeTokens + budget.Text(closingPrompt) + closingWhyMax
}
