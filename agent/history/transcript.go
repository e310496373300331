// Package history has the transcripts of agents outside of a log, their validation and repair. Check is for a
// transcript, whose small faults Mend repairs; package internal/message checks messages that are sent as they are.
package history

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// Form is the form of an exported transcript.
const Form = 1

// Transcript is the history of an agent outside of its log, with everything that its own
// loop knows of it: the format of an export, and the beginning of a fork or an import.
type Transcript struct {
	Form  int     `json:"form"`
	Run   string  `json:"run,omitempty"`
	Agent spec.ID `json:"agent,omitempty"`
	Name  string  `json:"name,omitempty"`
	Goal  string  `json:"goal,omitempty"`
	// System and Model are those with which the history was made. An agent that
	// recalls it has its own.
	System   string          `json:"system,omitempty"`
	Model    string          `json:"model,omitempty"`
	Turn     int             `json:"turn"`
	Usage    model.Usage     `json:"usage"`
	Messages []model.Message `json:"messages"`
	Fold     *Summary        `json:"fold,omitempty"`
	// Journal is the run journal, for people: an agent that recalls the history
	// rebuilds its journal from the calls that edited it.
	Journal string `json:"journal,omitempty"`
	// Tainted is the text from outside that the agent had read; nil: none.
	Tainted *spec.Taint `json:"tainted,omitempty"`
}

// Summary replaces the first Upto messages of a transcript in prompts.
type Summary struct {
	Upto int    `msgpack:"u" json:"upto"`
	Text string `msgpack:"t" json:"text"`
	Deep bool   `msgpack:"d,omitempty" json:"deep,omitempty"`
}

// Bounds of a recalled history.
const (
	MessagesMax = 4096
	BytesMax    = 8 << 20
	// PartsMax is how many parts a history may take: an agent accepts a
	// bounded number of commands in its life.
	PartsMax = 512
)

// Part is a part of a transcript that fits an entry.
type Part struct {
	Messages []model.Message
	Fold     *Summary // Upto counts the messages of all parts
}

// Split divides a transcript into parts.
func (p Transcript) Split() ([]Part, error) {
	var list []Part
	piece, sum, upto := Part{}, message.Size{}, 0
	fold := p.Fold
	for i, m := range p.Messages {
		if p.Fold != nil && i == p.Fold.Upto {
			fold = &Summary{Upto: upto, Text: p.Fold.Text, Deep: p.Fold.Deep}
		}
		for _, part := range pieces(m) {
			w := message.SizeOf(part)
			if !w.FitsAlone() {
				return nil, &Error{fmt.Sprintf("message %d", i), "it is too large for an entry of a log", "shorten it"}
			}
			if both := sum.Plus(w); len(piece.Messages) > 0 && !both.Fits() {
				list = append(list, piece)
				piece, sum = Part{}, message.Size{}
			}
			piece.Messages, sum, upto = append(piece.Messages, part), sum.Plus(w), upto+1
		}
	}
	if p.Fold != nil && p.Fold.Upto == len(p.Messages) {
		fold = &Summary{Upto: upto, Text: p.Fold.Text, Deep: p.Fold.Deep}
	}
	list = append(list, piece)
	if fold != nil {
		list = append(list, Part{Fold: fold})
	}
	if len(list) > PartsMax || upto > MessagesMax {
		return nil, &Error{"messages", fmt.Sprintf("there are too many: %d in %d parts, at most %d in %d can be recalled",
			upto, len(list), MessagesMax, PartsMax), "leave the oldest out"}
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
