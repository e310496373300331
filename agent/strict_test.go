package agent_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// errUnanswered: a history that ends with calls without results. A provider
// answers it with HTTP 400.
var errUnanswered = errors.New("the history ends with unanswered calls")

// strictTranscript reports the first thing in a prompt that a strict provider refuses:
// wrong order of roles, calls without results, results without calls, ids that
// are empty or used twice, messages without content.
func strictTranscript(messages []model.Message) error {
	if len(messages) == 0 || messages[0].Role != model.User {
		return errors.New("a prompt begins with a user message")
	}
	ids := map[string]bool{}
	var open []model.ToolCall
	for i, m := range messages {
		var before model.Role
		if i > 0 {
			before = messages[i-1].Role
		}
		if err := strictMessage(m, before, open, ids); err != nil {
			return fmt.Errorf("message %d (%s after %q): %w", i, m.Role, before, err)
		}
		open = m.Calls
	}
	if len(open) > 0 {
		return errUnanswered
	}
	return nil
}

func strictMessage(m model.Message, before model.Role, open []model.ToolCall, ids map[string]bool) error {
	switch {
	case m.Tombstone:
		return errors.New("a tombstone is never sent")
	case len(open) > 0 && m.Role != model.ToolRole:
		return errors.New("calls must be answered first")
	}
	switch m.Role {
	case model.User:
		if before == model.User {
			return errors.New("two user messages in a row")
		}
		if strings.TrimSpace(m.Text) == "" {
			return errors.New("no text")
		}
	case model.Assistant:
		if before == model.Assistant {
			return errors.New("two assistant messages in a row")
		}
		if strings.TrimSpace(m.Text) == "" && len(m.Calls) == 0 {
			return errors.New("neither text nor calls")
		}
		for _, c := range m.Calls {
			if c.ID == "" || ids[c.ID] {
				return fmt.Errorf("call id %q is empty or used twice", c.ID)
			}
			ids[c.ID] = true
		}
	case model.ToolRole:
		return strictResults(m.Results, open)
	default:
		return errors.New("unknown role")
	}
	return nil
}

func strictResults(results []model.ToolResult, open []model.ToolCall) error {
	if len(results) == 0 || len(results) != len(open) {
		return fmt.Errorf("%d results for %d calls", len(results), len(open))
	}
	for i, r := range results {
		if r.Call != open[i].ID {
			return fmt.Errorf("result %d answers %q, the call is %q", i, r.Call, open[i].ID)
		}
	}
	return nil
}

// strictRequest is strict about a request: what it sends must also wait for an answer.
func strictRequest(r model.Request) error {
	if err := strictTranscript(r.Messages); err != nil {
		return err
	}
	if last := r.Messages[len(r.Messages)-1].Role; last == model.Assistant {
		return errors.New("a request ends with what the model is to answer, not with its own message")
	}
	return nil
}
