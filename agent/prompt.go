package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// Prompt is the transcript as it is sent: a fold replaces the messages that it
// summarizes, the journal is included as it was last shown, tombstones are
// omitted, and neighbouring user messages are joined, so that roles alternate.
func (s State) Prompt() []model.Message {
	if s.plain() {
		return slices.Clip(s.History)
	}
	sent := make([]model.Message, 0, len(s.History)-s.Fold.Upto+4)
	user := func(text string) { sent = history.AppendSent(sent, model.Message{Role: model.User, Text: text}) }
	if s.Fold.Upto > 0 {
		user(s.Fold.Text)             //mutant:fold-moves-with-each-turn
		if s.Fold.Upto > s.Recalled { // no text replaces the task's media
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
			sent = history.AppendSent(sent, s.History[i])
		}
	}
	return sent
}

// plain reports whether the transcript can be sent as it is.
func (s State) plain() bool {
	return s.Fold.Upto == 0 && s.Journal.Shown.Text == "" && s.sentAsIs()
}

// anchored reports whether the provider of the model in use has reported the size
// of a part of the prompt.
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
