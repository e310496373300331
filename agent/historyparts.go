package agent

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// historyPart is a part of a transcript that fits an entry.
type historyPart struct {
	Messages []model.Message
	Fold     *history.Summary // Upto counts the messages of all parts
}

// splitHistory divides a transcript into parts.
func splitHistory(p history.Transcript) ([]historyPart, error) {
	var list []historyPart
	piece, sum, upto := historyPart{}, message.Size{}, 0
	fold := p.Fold
	for i, m := range p.Messages {
		if p.Fold != nil && i == p.Fold.Upto {
			fold = &history.Summary{Upto: upto, Text: p.Fold.Text, Deep: p.Fold.Deep}
		}
		for _, part := range pieces(m) {
			w := message.SizeOf(part)
			if !w.FitsAlone() {
				return nil, &history.Error{Place: fmt.Sprintf("message %d", i), What: "it is too large for an entry of a log", Remedy: "shorten it"}
			}
			if both := sum.Plus(w); len(piece.Messages) > 0 && !both.Fits() {
				list = append(list, piece)
				piece, sum = historyPart{}, message.Size{}
			}
			piece.Messages, sum, upto = append(piece.Messages, part), sum.Plus(w), upto+1
		}
	}
	if p.Fold != nil && p.Fold.Upto == len(p.Messages) {
		fold = &history.Summary{Upto: upto, Text: p.Fold.Text, Deep: p.Fold.Deep}
	}
	list = append(list, piece)
	if fold != nil {
		list = append(list, historyPart{Fold: fold})
	}
	if len(list) > history.PartsMax || upto > history.MessagesMax {
		return nil, &history.Error{Place: "messages", What: fmt.Sprintf("there are too many: %d in %d parts, at most %d in %d can be recalled",
			upto, len(list), history.MessagesMax, history.PartsMax), Remedy: "leave the oldest out"}
	}
	return list, nil
}

// pieces splits a message so that parts can hold it: it may have many large results.
func pieces(m model.Message) []model.Message {
	if m.Role != model.ToolRole || len(m.Results) < 2 || m.Tombstone {
		return []model.Message{m}
	}
	list := make([]model.Message, len(m.Results))
	for i, r := range m.Results {
		list[i] = model.Message{Role: model.ToolRole, Results: []model.ToolResult{r}}
	}
	list[0].Tokens = m.Tokens
	return list
}
