package message

import (
	"slices"

	"github.com/troupe-run/troupe/model"
)

// AppendSent appends a message to those that are sent. It joins a user message to
// a user message before it, and drops the token counts of the two.
func AppendSent(sent []model.Message, m model.Message) []model.Message {
	n := len(sent)
	if n == 0 || m.Role != model.User || sent[n-1].Role != model.User { //mutant:neighbours-not-joined
		return append(sent, m)
	}
	sent[n-1].Text += "\n\n" + m.Text
	sent[n-1].Media = slices.Concat(sent[n-1].Media, m.Media)
	sent[n-1].Tokens = 0
	return sent
}
