package agent

import (
	"slices"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/internal/promptlayer"
	"github.com/troupe-run/troupe/model"
)

// Prompt is the transcript as it is sent: a fold replaces the messages that it
// summarizes, the journal is included as it was last shown, tombstones are
// omitted, and neighbouring user messages are joined, so that roles alternate.
func (s *State) Prompt() []model.Message {
	if s.Fold.Upto == 0 && s.Journal.Shown.Text == "" && s.sentAsIs() {
		return slices.Clip(s.History)
	}
	sent := make([]model.Message, 0, len(s.History)-s.Fold.Upto+4)
	user := func(text string) { sent = message.AppendSent(sent, model.Message{Role: model.User, Text: text}) }
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
			sent = message.AppendSent(sent, s.History[i])
		}
	}
	return sent
}

// systemPrompt returns the system prompt of the next request: the part that stays the same, or what hooks have
// computed for this turn in its place, and the part after it.
func systemPrompt(s *State) (stable, volatile string) {
	stable, volatile = promptlayer.Compose(s.Task)
	if s.HookEffects.System != nil {
		stable = *s.HookEffects.System
	}
	return stable, s.Journal.systemText(volatile)
}

// inputBound is an upper bound of the tokens of the next prompt: what the
// provider reported for the prefix, and the bytes of the rest.
func (s *State) inputBound() int64 {
	var n int64
	if s.hasAnchor() && !s.HookEffects.changedPrompt() {
		n = s.Anchor.Tokens
		for _, m := range s.History[s.Anchor.Messages:] { //mutant:bound-without-tail
			n += budget.Message(m)
		}
		if s.Anchor.Formless {
			n += budget.Text(s.replySchema())
		}
	} else {
		stable, volatile := systemPrompt(s)
		n = budget.EnvelopeTokens + budget.Text(stable) + budget.Text(volatile) + budget.Tools(s.Task.Tools) + budget.Text(s.replySchema())
		for _, m := range s.messagesToSend() {
			n += budget.Message(m)
		}
		if len(s.Task.Tools) > 0 {
			n += s.currentModel(&s.Task).Frame
		}
	}
	return n + budget.EnvelopeTokens + budget.Text(closingPrompt) + closingWhyMax
}

// replySchema is the schema that this turn's reply must fit if it is the answer; "" if
// there is none. A closing turn reports the findings so far, which need not fit; a
// turn that is forced to call cannot answer; a turn that continues a cut reply has
// only the rest; and an answer about obstacles begins with a mark.
func (s *State) replySchema() string {
	if s.ClosingReason != "" || s.Force != "" || s.Cuts > 0 || s.Goal.Asked > 0 && len(s.Obstacles) > 0 {
		return ""
	}
	return s.Task.LoopOptions.Require.Schema
}
