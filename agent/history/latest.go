package history

import (
	"slices"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// Bounds of what one run of a conversation receives from the run before it. Older messages stay in the logs of the
// earlier runs.
const (
	latestMessagesMax = 1024
	LatestBytesMax    = 1 << 20
	// latestMessageMax bounds the results of one message of it, so that one large message is not all that is left, or
	// dropped.
	latestMessageMax = LatestBytesMax / 4
)

// Latest returns the part of a transcript with which a conversation continues: the messages that its summary replaces
// are left out, except the one that follows the summary, and then the oldest until the rest is within
// the bounds. A history may then begin in the middle of a turn, which the loop repairs. left is how
// many messages were left out.
func (p Transcript) Latest() (latest Transcript, left int) {
	fold := 0 // messages of the result that the summary replaces
	if p.Fold != nil && p.Fold.Upto > 0 && p.Fold.Upto <= len(p.Messages) {
		fold, left = 1, p.Fold.Upto-1
	}
	p.Messages = slices.Clone(p.Messages)
	for i := left + fold; i < len(p.Messages); i++ {
		p.Messages[i] = shortenResults(p.Messages[i])
	}
	bytes := 0
	for _, m := range p.Messages[left+fold:] {
		bytes += message.BytesOf(m)
	}
	tail := left + fold
	for tail < len(p.Messages) && (bytes > LatestBytesMax || len(p.Messages)-tail > latestMessagesMax) {
		bytes -= message.BytesOf(p.Messages[tail])
		tail++
	}
	// results without their calls
	for tail > left+fold && tail < len(p.Messages) && p.Messages[tail].Role == model.ToolRole {
		tail++
	}
	latest = p
	latest.Messages = slices.Concat(p.Messages[left:left+fold], p.Messages[tail:])
	if latest.Fold = nil; fold > 0 {
		latest.Fold = &Summary{Upto: fold, Text: p.Fold.Text, Deep: p.Fold.Deep}
	}
	return latest, left + tail - (left + fold)
}

// shortenResults shortens the results of a message that are far above the average that latestMessageMax leaves them.
func shortenResults(m model.Message) model.Message {
	if message.BytesOf(m) <= latestMessageMax || len(m.Results) == 0 {
		return m
	}
	most := latestMessageMax / len(m.Results)
	m.Results = slices.Clone(m.Results)
	for i, r := range m.Results {
		m.Results[i].Text = clip.Marked(r.Text, most, "\n[… the rest was left out when the conversation went on …]")
	}
	m.Tokens = 0
	return m
}
