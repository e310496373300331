package agent

import (
	"slices"

	"github.com/troupe-run/troupe/model"
)

// appendToTranscriptAndPrompt appends a user message to the transcript, and to the messages that
// replace it this turn.
func appendToTranscriptAndPrompt(s *State, text string) *State {
	s = s.appendMessage(model.Message{Role: model.User, Text: text})
	sent := slices.Clone(s.HookEffects.Sent)
	switch n := len(sent); {
	case n == 0:
	case sent[n-1].Role == model.User:
		sent[n-1].Text += "\n\n" + text
	default:
		sent = append(sent, model.Message{Role: model.User, Text: text})
	}
	s.HookEffects.Sent = sent
	return s
}

// messagesToSend returns the messages of a model call: the transcript, or the hooks' version of it.
func (s *State) messagesToSend() []model.Message {
	if s.HookEffects.Sent != nil {
		return s.HookEffects.Sent
	}
	return s.Prompt()
}
