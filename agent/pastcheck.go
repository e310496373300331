package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/model"
)

// Bounds of a history that is recalled.
const (
	PastMessagesMax = 4096
	PastBytesMax    = 8 << 20
	// PastPartBytes is the most bytes of one Recalled, and of what is handed to a
	// child: it must fit an entry, and as JSON a request.
	PastPartBytes = 128 << 10
	// PastPartsMax is how many Recalled a history may take: an agent accepts a
	// bounded number of commands in its life.
	PastPartsMax = 512
)

// PastError is what is wrong with a history that was to be recalled.
type PastError struct {
	Place  string // "message 3", "fold", …
	What   string
	Remedy string
}

func (e *PastError) Error() string { return e.Place + ": " + e.What }

// weight is what messages take in an entry: their bytes, and the values within
// values, of which the codec allows only so many for the bytes.
type weight struct{ bytes, nested int }

const (
	pastEnvelope  = 24  // bytes of a value within a value
	nestedCost    = 720 // what the codec counts for one at most, with its fields
	nestedBase    = 112 << 10
	nestedPerByte = 2
)

func weigh(messages ...model.Message) weight {
	var w weight
	add := func(sizes ...int) {
		w.nested++
		w.bytes += pastEnvelope
		for _, n := range sizes {
			w.bytes += n
		}
	}
	for _, m := range messages {
		add(len(m.Role), len(m.Text))
		for _, d := range m.Media {
			add(len(d.Kind), len(d.Type), len(d.Name), len(d.Ref), 3*pastEnvelope)
		}
		for _, c := range m.Calls {
			add(len(c.ID), len(c.Name), len(c.Args))
		}
		for _, r := range m.Results {
			add(len(r.Call), len(r.Text))
		}
		for _, o := range m.Opaque {
			add(len(o.Issuer), len(o.Kind), len(o.Data))
		}
		if m.Usage != nil {
			add()
		}
	}
	return w
}

func (w weight) plus(v weight) weight { return weight{w.bytes + v.bytes, w.nested + v.nested} }

// fits reports whether an entry takes it.
func (w weight) fits() bool {
	return w.bytes <= PastPartBytes && w.nested*nestedCost <= nestedBase+nestedPerByte*w.bytes
}

// pieces is a message as parts can take it: results may be many, and large.
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

// Parts divides a history into what fits an entry each. id names the history:
// parts of another one do not mix with them.
func (p Past) Parts(id string) ([]Recalled, error) {
	var parts []Recalled
	part, sum, upto := Recalled{Past: id}, weight{}, 0
	fold := p.Fold
	for i, m := range p.Messages {
		if p.Fold != nil && i == p.Fold.Upto {
			fold = &PastFold{Upto: upto, Text: p.Fold.Text, Deep: p.Fold.Deep}
		}
		for _, piece := range pieces(m) {
			w := weigh(piece)
			if !(weight{nested: w.nested, bytes: min(w.bytes, PastPartBytes)}).fits() || w.bytes > entryBytes {
				return nil, &PastError{fmt.Sprintf("message %d", i), "it is too large for an entry of a log", "shorten it"}
			}
			if both := sum.plus(w); len(part.Messages) > 0 && !both.fits() {
				parts = append(parts, part)
				part, sum = Recalled{Past: id, Part: len(parts)}, weight{}
			}
			part.Messages, sum, upto = append(part.Messages, piece), sum.plus(w), upto+1
		}
	}
	if p.Fold != nil && p.Fold.Upto == len(p.Messages) {
		fold = &PastFold{Upto: upto, Text: p.Fold.Text, Deep: p.Fold.Deep}
	}
	parts = append(parts, part)
	if fold != nil {
		parts = append(parts, Recalled{Past: id, Part: len(parts), Fold: fold})
	}
	if len(parts) > PastPartsMax || upto > PastMessagesMax {
		return nil, &PastError{"messages", fmt.Sprintf("there are too many: %d in %d parts, at most %d in %d can be recalled",
			upto, len(parts), PastMessagesMax, PastPartsMax), "leave the oldest out"}
	}
	return parts, nil
}

// entryBytes is the most bytes of a single piece: an entry has room for little more.
const entryBytes = 200 << 10

// Check refuses what is no history of an agent, and names the place. A history
// that it accepts is recalled as it is, but for the ids of its calls.
func (p Past) Check() error {
	switch {
	case p.Form != PastForm:
		return &PastError{"form", fmt.Sprintf("it is %d, this program reads %d", p.Form, PastForm), "export the history with this version of troupe"}
	case len(p.Messages) == 0:
		return &PastError{"messages", "there are none", "a history has at least the prompt that began it"}
	case len(p.Messages) > PastMessagesMax:
		return &PastError{"messages", fmt.Sprintf("there are %d, at most %d can be recalled", len(p.Messages), PastMessagesMax), "leave the oldest out"}
	}
	if w := weigh(p.Messages...); w.bytes > PastBytesMax {
		return &PastError{"messages", fmt.Sprintf("they are %d bytes, at most %d can be recalled", w.bytes, PastBytesMax), "leave the oldest out"}
	}
	var c pastChecker
	for i, m := range p.Messages {
		if p.Fold != nil && i == p.Fold.Upto && len(c.open) > 0 {
			return &PastError{"fold", "it parts calls from their results", "let upto name another message"}
		}
		if what, remedy := c.next(m); what != "" {
			return &PastError{fmt.Sprintf("message %d", i), what, remedy}
		}
	}
	if f := p.Fold; f != nil {
		return f.check(len(p.Messages))
	}
	return nil
}

func (f PastFold) check(messages int) error {
	switch {
	case f.Upto < 1 || f.Upto > messages:
		return &PastError{"fold", fmt.Sprintf("upto is %d of %d messages", f.Upto, messages), "leave the fold out"}
	case strings.TrimSpace(f.Text) == "" || !utf8.ValidString(f.Text) || len(f.Text) > PastPartBytes:
		return &PastError{"fold", "its text is empty, too long, or not UTF-8", "leave the fold out"}
	}
	return nil
}

// pastChecker reads a history message by message.
type pastChecker struct {
	live model.Role
	open []model.ToolCall
}

func (c *pastChecker) next(m model.Message) (what, remedy string) {
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

// answers checks results against the calls that are open. They may come in
// several messages.
func (c *pastChecker) answers(results []model.ToolResult) string {
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

// encoded says what of a message cannot be kept or sent.
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
