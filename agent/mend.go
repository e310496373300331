package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// mendHistory returns messages in a form that a provider accepts, and the summary of the first
// of them; nil: there is none. Calls get ids that no call of an agent can have.
func mendHistory(messages []model.Message, fold *history.Summary) (mended []model.Message, at *history.Summary) {
	m := mender{}
	if fold != nil && strings.TrimSpace(fold.Text) == "" {
		fold = nil // it would replace messages with an empty text
	}
	for i, said := range messages {
		if fold != nil && i == fold.Upto && m.open == nil {
			at = &history.Summary{Upto: len(m.out), Text: fold.Text, Deep: fold.Deep}
		}
		m.take(said)
	}
	if m.flush(); fold != nil && fold.Upto == len(messages) {
		at = &history.Summary{Upto: len(m.out), Text: fold.Text, Deep: fold.Deep}
	}
	return m.out, at
}

// mender rewrites a history in a form that a provider accepts.
type mender struct {
	out   []model.Message
	live  model.Role // of the last message that is sent
	calls int        // of all
	open  []model.ToolCall
	was   []string // the ids that the open calls had
	have  []*model.ToolResult
	// tokens is the estimate of the results that have come.
	tokens int64
}

// Placeholders for gaps in a history.
const (
	gapText      = "(no message is recorded here)"
	noResultText = "no result is known: the recalled history ends before this call returned"
)

func (m *mender) take(said model.Message) {
	if !said.Tombstone {
		said = message.NameMedia(said)
	}
	said.Calls, said.Results = slices.Clone(said.Calls), slices.Clone(said.Results)
	blank := strings.TrimSpace(said.Text) == ""
	switch {
	case said.Tombstone:
	case said.Role == model.ToolRole && m.open != nil:
		m.tokens += max(said.Tokens, 0)
		m.answer(said.Results)
		return
	case said.Role == model.User && !blank:
		m.flush()
	case said.Role == model.Assistant && (!blank || len(said.Calls) > 0):
		if m.flush(); m.live == "" || m.live == model.Assistant {
			m.put(model.Message{Role: model.User, Text: gapText})
		}
	default:
		said.Tombstone = true // the message stays in the record and is never sent
	}
	if !said.Tombstone {
		said.Results = nil
		if said.Role != model.Assistant {
			said.Calls = nil
		}
	}
	said.Tokens = believed(said)
	was := make([]string, len(said.Calls))
	for i := range said.Calls {
		was[i] = said.Calls[i].ID
		said.Calls[i].ID = fmt.Sprintf("%s%d", callPrefix, m.calls)
		m.calls++
	}
	if said.Tombstone {
		m.out = append(m.out, said)
		return
	}
	if m.put(said); len(said.Calls) > 0 {
		m.open, m.was, m.have = said.Calls, was, make([]*model.ToolResult, len(said.Calls))
	}
}

// believed is the estimate of a message, if that is plausible.
func believed(m model.Message) int64 {
	if m.Tokens < 0 || m.Tokens > budget.Message(m) {
		return 0
	}
	return m.Tokens
}

// callPrefix begins the ids of recalled calls. The ids of an agent's own calls
// begin with a digit, and every recall numbers anew.
const callPrefix = "past-"

func (m *mender) put(said model.Message) {
	m.out, m.live = append(m.out, said), said.Role
}

// answer matches results to the open calls. A message of results may have been
// split.
func (m *mender) answer(results []model.ToolResult) {
	for _, r := range results {
		for i, id := range m.was {
			if id == r.Call && m.have[i] == nil {
				r.Call = m.open[i].ID
				m.have[i] = &r
				break
			}
		}
	}
	if !slices.Contains(m.have, nil) {
		m.flush()
	}
}

// flush answers every open call: with its result, or with the truth.
func (m *mender) flush() {
	if m.open == nil {
		return
	}
	results := make([]model.ToolResult, len(m.open))
	for i, c := range m.open {
		results[i] = model.ToolResult{Call: c.ID, Text: noResultText, Error: true}
		if m.have[i] != nil {
			results[i] = *m.have[i]
		}
	}
	answers := model.Message{Role: model.ToolRole, Results: results, Tokens: m.tokens}
	answers.Tokens = believed(answers)
	m.put(answers)
	m.open, m.was, m.have, m.tokens = nil, nil, nil, 0
}
