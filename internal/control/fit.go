package control

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// replyBytes is the maximum size of a list or a transcript: half the maximum size of a
// message.
const replyBytes = 512 << 10

// textBytesMin is the length to which the texts of a transcript are cut before it is
// refused.
const textBytesMin = 64

// fitTranscript cuts long texts, the longest first, until it fits a reply.
func fitTranscript(t Transcript) (Transcript, error) {
	for most := replyBytes / 4; ; most /= 4 {
		raw, err := json.Marshal(t)
		if err != nil {
			return t, fmt.Errorf("control: transcript: %w", err)
		}
		if len(raw) <= replyBytes {
			return t, nil
		}
		if most < textBytesMin {
			return t, &client.Error{Code: client.CodeLimit, Text: "the transcript is too long for one reply", Hint: "`troupe events` reads it in pages"}
		}
		messages := make([]model.Message, len(t.Messages))
		for i, m := range t.Messages {
			m.Text = truncateText(m.Text, most)
			m.Opaque = nil
			m.Calls, m.Results = append([]model.ToolCall{}, m.Calls...), append([]model.ToolResult{}, m.Results...)
			for j := range m.Calls {
				m.Calls[j].Args = truncateText(m.Calls[j].Args, most)
			}
			for j := range m.Results {
				m.Results[j].Text = truncateText(m.Results[j].Text, most)
			}
			messages[i] = m
		}
		t.Messages = messages
		t.Folds = slices.Clone(t.Folds)
		for i := range t.Folds {
			t.Folds[i].Text = truncateText(t.Folds[i].Text, most)
		}
	}
}

// truncateText keeps the first bytes of a text and says how many there were.
func truncateText(s string, most int) string {
	return clip.Marked(s, most, fmt.Sprintf("… (%d bytes in all)", len(s)))
}
