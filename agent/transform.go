package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// sayToo appends a user's message to the transcript, and to what is sent instead
// of it.
func (s State) sayToo(text string) State {
	s = s.say(model.Message{Role: model.User, Text: text})
	sent := slices.Clone(s.Rounds.Sent)
	switch n := len(sent); {
	case n == 0:
	case sent[n-1].Role == model.User:
		sent[n-1].Text += "\n\n" + text
	default:
		sent = append(sent, model.Message{Role: model.User, Text: text})
	}
	s.Rounds.Sent = sent
	return s
}

// sent is what a model call sends: the transcript, or what hooks made of it.
func (s State) sent() []model.Message {
	if s.Rounds.Sent != nil {
		return s.Rounds.Sent
	}
	return s.Prompt()
}

// SentBytesMax bounds what a context hook may send instead of the prompt: it is
// part of an entry.
const SentBytesMax = 160 << 10

// Sendable reports the first thing in messages that a strict provider would
// refuse: what begins with an assistant, roles that do not alternate, calls
// without results, results without calls, messages that say nothing.
func Sendable(messages []model.Message) error {
	size, before := 0, model.Assistant
	var open []model.ToolCall
	ids := map[string]bool{}
	if len(messages) == 0 || messages[0].Role != model.User {
		return fmt.Errorf("what it would send does not begin with a user's message")
	}
	for i, m := range messages {
		if err := follows(m, before, open, ids); err != nil {
			return fmt.Errorf("message %d of what it would send: %w", i, err)
		}
		size += volume(m)
		before, open = m.Role, m.Calls
	}
	switch {
	case before == model.Assistant:
		return fmt.Errorf("what it would send ends with nothing to answer")
	case size > SentBytesMax:
		return fmt.Errorf("what it would send has %d bytes, at most %d are kept", size, SentBytesMax)
	}
	return nil
}

// follows checks one message behind another; before is the role of that one,
// open are its calls.
func follows(m model.Message, before model.Role, open []model.ToolCall, ids map[string]bool) error {
	empty := strings.TrimSpace(m.Text) == ""
	switch {
	case m.Tombstone:
		return fmt.Errorf("it is struck from the transcript")
	case (m.Role == model.ToolRole) != (len(open) > 0), m.Role != model.ToolRole && len(m.Results) > 0:
		return fmt.Errorf("calls and results do not match")
	case m.Role == before:
		return fmt.Errorf("two messages of %s in a row", m.Role)
	case m.Role == model.User && (empty || len(m.Calls) > 0), m.Role == model.Assistant && empty && len(m.Calls) == 0:
		return fmt.Errorf("it says nothing")
	case m.Role != model.User && m.Role != model.Assistant && m.Role != model.ToolRole:
		return fmt.Errorf("no role is called %q", clip(string(m.Role), nameShown))
	}
	for _, c := range m.Calls {
		if !callID.MatchString(c.ID) || ids[c.ID] {
			return fmt.Errorf("the id %q of a call is used twice, or is none", clip(c.ID, nameShown))
		}
		ids[c.ID] = true
	}
	return paired(m.Results, open)
}

var callID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// paired: results answer exactly the calls before them, in their order.
func paired(results []model.ToolResult, open []model.ToolCall) error {
	if len(results) != len(open) {
		return fmt.Errorf("%d results for %d calls", len(results), len(open))
	}
	for i, r := range results {
		if r.Call != open[i].ID {
			return fmt.Errorf("result %d answers %q, the call is %q", i, clip(r.Call, nameShown), open[i].ID)
		}
	}
	return nil
}

// volume is how many bytes a message has.
func volume(m model.Message) int {
	n := len(m.Text)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Args)
	}
	for _, r := range m.Results {
		n += len(r.Text)
	}
	for _, o := range m.Opaque {
		n += len(o.Data)
	}
	return n
}
