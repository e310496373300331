package history

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// Error describes a fault in a history that was to be recalled.
type Error struct {
	Place  string // "message 3", "fold", …
	What   string
	Remedy string
}

func (e *Error) Error() string { return e.Place + ": " + e.What }

// Check rejects a transcript that is not the history of an agent, and names the place of
// the fault. An accepted history is recalled as it is, except for the ids of its calls.
func (p Transcript) Check() error {
	switch {
	case p.Form != Form:
		return &Error{"form", fmt.Sprintf("it is %d, this program reads %d", p.Form, Form), "export the history with this version of troupe"}
	case len(p.Messages) == 0:
		return &Error{"messages", "there are none", "a history has at least the prompt that began it"}
	case len(p.Messages) > MessagesMax:
		return &Error{"messages", fmt.Sprintf("there are %d, at most %d can be recalled", len(p.Messages), MessagesMax), "leave the oldest out"}
	}
	if w := message.SizeOf(p.Messages...); w.Bytes > BytesMax {
		return &Error{"messages", fmt.Sprintf("they are %d bytes, at most %d can be recalled", w.Bytes, BytesMax), "leave the oldest out"}
	}
	var c checker
	for i, m := range p.Messages {
		if p.Fold != nil && i == p.Fold.Upto && len(c.open) > 0 {
			return &Error{"fold", "it parts calls from their results", "let upto name another message"}
		}
		if what, remedy := c.next(m); what != "" {
			return &Error{fmt.Sprintf("message %d", i), what, remedy}
		}
	}
	if f := p.Fold; f != nil {
		return f.check(len(p.Messages))
	}
	return nil
}

func (f Summary) check(messages int) error {
	switch {
	case f.Upto < 1 || f.Upto > messages:
		return &Error{"fold", fmt.Sprintf("upto is %d of %d messages", f.Upto, messages), "leave the fold out"}
	case strings.TrimSpace(f.Text) == "" || !utf8.ValidString(f.Text) || len(f.Text) > message.PartBytesMax:
		return &Error{"fold", "its text is empty, too long, or not UTF-8", "leave the fold out"}
	}
	return nil
}

// checker reads a history message by message.
type checker struct {
	live model.Role
	open []model.ToolCall
}

func (c *checker) next(m model.Message) (what, remedy string) {
	if what := encoded(m); what != "" {
		return what, "export the history again"
	}
	if len(m.Media) > 0 {
		return "it has media, whose bytes no history has", "leave them out, and name them in its text"
	}
	if m.Tombstone {
		return "", ""
	}
	blank := strings.TrimSpace(m.Text) == ""
	switch {
	case m.Role != model.ToolRole && len(m.Results) > 0, m.Role != model.Assistant && len(m.Calls) > 0:
		return "calls are an assistant's, results a tool's", "put them into messages of their own"
	case len(c.open) > 0 && m.Role != model.ToolRole:
		return fmt.Sprintf("it follows %d calls that have no results", len(c.open)), "let a tool message answer them"
	case m.Role == model.User && blank:
		return "a user's message says nothing", "leave it out, or mark it as a tombstone"
	case m.Role == model.Assistant && c.live != model.User && c.live != model.ToolRole:
		return "an assistant's message follows neither a user's nor results", "put what it answers before it"
	case m.Role == model.Assistant && blank && len(m.Calls) == 0:
		return "an assistant's message has neither text nor calls", "leave it out, or mark it as a tombstone"
	case m.Role == model.ToolRole:
		if what := c.answers(m.Results); what != "" {
			return what, "answer every call once, under its id, in the order asked"
		}
	case m.Role != model.User && m.Role != model.Assistant:
		return fmt.Sprintf("the role is %.40q", m.Role), "roles are user, assistant and tool"
	}
	if m.Role == model.ToolRole {
		c.live, c.open = m.Role, c.open[len(m.Results):]
		return "", ""
	}
	ids := map[string]bool{}
	for _, call := range m.Calls {
		if call.ID == "" || ids[call.ID] {
			return fmt.Sprintf("a call has no id, or the id %.40q of another one", call.ID), "give each call an id of its own"
		}
		ids[call.ID] = true
	}
	c.live, c.open = m.Role, m.Calls
	return "", ""
}

// answers checks results against the open calls. The results may come in several
// messages.
func (c *checker) answers(results []model.ToolResult) string {
	if len(results) > len(c.open) || len(results) == 0 {
		return fmt.Sprintf("there are %d results for %d calls", len(results), len(c.open))
	}
	for i, r := range results {
		if r.Call != c.open[i].ID {
			return fmt.Sprintf("result %d answers %.40q, the call is %.40q", i, r.Call, c.open[i].ID)
		}
	}
	return ""
}

// encoded names the part of a message that cannot be stored or sent.
func encoded(m model.Message) string {
	texts := []string{string(m.Role), m.Text}
	for _, c := range m.Calls {
		texts = append(texts, c.ID, c.Name, c.Args)
	}
	for _, r := range m.Results {
		texts = append(texts, r.Call, r.Text)
	}
	for _, o := range m.Opaque {
		texts = append(texts, o.Issuer, o.Kind)
	}
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return "it is not UTF-8"
		}
	}
	if u := m.Usage; m.Tokens < 0 || u != nil && min(u.Input, u.Output, u.CacheRead, u.CacheCreation, u.Reasoning) < 0 {
		return "its usage is negative"
	}
	return ""
}
