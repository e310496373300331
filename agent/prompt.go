package agent

import (
	"slices"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// Prompt is the transcript as it is sent: a fold in place of what it stands
// for, the journal as it was last shown, without tombstones, and with
// neighbouring user messages joined, so that roles alternate.
func (s State) Prompt() []model.Message {
	if s.plain() {
		return slices.Clip(s.History)
	}
	sent := make([]model.Message, 0, len(s.History)-s.Fold.Upto+4)
	user := func(text string) { sent = add(sent, model.Message{Role: model.User, Text: text}) }
	if s.Fold.Upto > 0 {
		user(s.Fold.Text)             //mutant:fold-moves-with-each-turn
		if s.Fold.Upto > s.Recalled { // no text stands for the task's media
			sent[0].Media = s.Task.Media
		}
	}
	for i := s.Fold.Upto; i <= len(s.History); i++ {
		if shown := s.Journal.Shown; i == shown.At && shown.Text != "" {
			user(journalHead + shown.Text)
			sent = append(sent, model.Message{Role: model.Assistant, Text: journalAck})
			user(journalGoOn)
		}
		if i < len(s.History) && !s.History[i].Tombstone { //mutant:prompt-tombstones
			sent = add(sent, s.History[i])
		}
	}
	return sent
}

// plain reports whether the transcript can be sent as it is.
func (s State) plain() bool {
	if s.Fold.Upto > 0 || s.Journal.Shown.Text != "" {
		return false
	}
	for i, m := range s.History {
		if m.Tombstone || i > 0 && m.Role == model.User && s.History[i-1].Role == model.User { //mutant:plain-tombstones
			return false
		}
	}
	return true
}

// add appends a message that is sent. A user message after another
// joins it, and nobody has counted the two together.
func add(sent []model.Message, m model.Message) []model.Message {
	n := len(sent)
	if n == 0 || m.Role != model.User || sent[n-1].Role != model.User { //mutant:neighbours-not-joined
		return append(sent, m)
	}
	sent[n-1].Text += "\n\n" + m.Text
	sent[n-1].Media = slices.Concat(sent[n-1].Media, m.Media)
	sent[n-1].Tokens = 0
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
		for _, m := range s.History[s.Anchor.Messages:] { //mutant:bound-without-tail
			n += budget.Message(m)
		}
		if s.Anchor.Formless {
			n += budget.Text(s.form())
		}
	} else {
		n = budget.EnvelopeTokens + budget.Text(s.Task.System) + budget.Text(s.dynamic()) + budget.Tools(s.Task.Tools) + budget.Text(s.form())
		for _, m := range s.sent() {
			n += budget.Message(m)
		}
		if len(s.Task.Tools) > 0 {
			n += s.route().Frame
		}
	}
	return n + budget.EnvelopeTokens + budget.Text(closingPrompt) + closingWhyMax
}
