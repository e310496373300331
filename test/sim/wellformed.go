package sim

import (
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/model"
)

// wellFormed accepts what the strictest provider accepts: a user message comes first,
// roles alternate (tool results count as the user's turn), every call has
// one result, directly after it, in order, and no message is empty.
func wellFormed(messages []model.Message) error {
	if len(messages) == 0 || messages[0].Role != model.User {
		return errors.New("the first message is not a user's")
	}
	for i, m := range messages {
		if m.Tombstone {
			return fmt.Errorf("message %d is a tombstone", i)
		}
		if err := strictShape(m); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		var before model.Message
		if i > 0 {
			before = messages[i-1]
		}
		if i > 0 && m.Role == before.Role {
			return fmt.Errorf("message %d: two messages of %s in a row", i, m.Role)
		}
		if m.Role == model.Assistant && before.Role == model.Assistant || m.Role == model.ToolRole && before.Role != model.Assistant {
			return fmt.Errorf("message %d: %s after %s", i, m.Role, before.Role)
		}
		if err := strictPair(before, m); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	if last := messages[len(messages)-1]; last.Role == model.Assistant {
		return errors.New("the last message is the assistant's")
	}
	return nil
}

func strictShape(m model.Message) error {
	switch m.Role {
	case model.User:
		if m.Text == "" || len(m.Calls)+len(m.Results) > 0 {
			return errors.New("not a user's message")
		}
	case model.Assistant:
		if m.Text == "" && len(m.Calls) == 0 || len(m.Results) > 0 {
			return errors.New("an empty assistant message")
		}
	case model.ToolRole:
		if len(m.Results) == 0 || m.Text != "" || len(m.Calls) > 0 {
			return errors.New("not a message of results")
		}
	default:
		return fmt.Errorf("role %q", m.Role)
	}
	return nil
}

// strictPair checks that results answer exactly the calls before them.
func strictPair(before, m model.Message) error {
	if len(before.Calls) == 0 && m.Role != model.ToolRole {
		return nil
	}
	if len(m.Results) != len(before.Calls) {
		return fmt.Errorf("%d results for %d calls", len(m.Results), len(before.Calls))
	}
	seen := map[string]bool{}
	for i, r := range m.Results {
		if r.Call != before.Calls[i].ID || r.Call == "" || seen[r.Call] {
			return fmt.Errorf("result %d answers %q with %q, the call is %q", i, r.Call, r.Text, before.Calls[i].ID)
		}
		seen[r.Call] = true
	}
	return nil
}

// strictHistory checks that the record is well formed, too, once an agent is done;
// every call in it has exactly one result.
func strictHistory(history []model.Message) error {
	ids := map[string]bool{}
	for i, m := range history {
		if m.Tombstone || len(m.Calls) == 0 {
			continue
		}
		if i+1 == len(history) {
			return fmt.Errorf("the calls of message %d have no results", i)
		}
		if err := strictPair(m, history[i+1]); err != nil {
			return err
		}
		for _, c := range m.Calls {
			if ids[c.ID] {
				return fmt.Errorf("two calls have the id %q", c.ID)
			}
			ids[c.ID] = true
		}
	}
	return nil
}
