package message

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// SentBytesMax bounds the messages that a context hook may send instead of the
// prompt: they are part of an entry.
const SentBytesMax = 160 << 10

// Sendable reports the first fault in messages that a strict provider would
// reject: an assistant message at the beginning, roles that do not alternate,
// calls without results, results without calls, messages without content.
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
		size += BytesOf(m)
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

// follows checks one message after another; before is the role of the earlier
// message, open are its calls.
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
		return fmt.Errorf("no role is called %q", clip.Text(string(m.Role), NameBytesShown))
	}
	for _, c := range m.Calls {
		if !isCallID(c.ID) || ids[c.ID] {
			return fmt.Errorf("the id %q of a call is used twice, or is none", clip.Text(c.ID, NameBytesShown))
		}
		ids[c.ID] = true
	}
	return paired(m.Results, open)
}

// callIDBytesMax is how long the id of a call may be for each provider.
const callIDBytesMax = 64

// isCallID reports whether each provider takes an id of a call: ASCII letters, digits, _ and -.
func isCallID(id string) bool {
	for i := range len(id) {
		switch b := id[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= callIDBytesMax
}

// paired checks that results answer exactly the calls before them, in their order.
func paired(results []model.ToolResult, open []model.ToolCall) error {
	if len(results) != len(open) {
		return fmt.Errorf("%d results for %d calls", len(results), len(open))
	}
	for i, r := range results {
		if r.Call != open[i].ID {
			return fmt.Errorf("result %d answers %q, the call is %q", i, clip.Text(r.Call, NameBytesShown), open[i].ID)
		}
	}
	return nil
}
