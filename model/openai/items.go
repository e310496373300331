package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// itemsKind is the kind of the one opaque block of a reply of the Responses API:
// the order of its items, with what only OpenAI understands of them.
const itemsKind = "items"

// maxItems bounds the items of one reply; later items are dropped.
const maxItems = 4096

// between stands between the texts of two messages of one reply.
const between = "\n\n"

// itemStep is one item of a reply: a message, the next of its calls, or a thought.
type itemStep struct {
	Text    int            `json:"text,omitempty"` // of a message, in bytes
	Phase   string         `json:"phase,omitempty"`
	Call    bool           `json:"call,omitempty"`
	Thought *reasoningItem `json:"reasoning,omitempty"`
}

// reasoningItem is a reasoning item: the fields that go back verbatim.
type reasoningItem struct {
	ID        string   `json:"id"`
	Summary   []string `json:"summary,omitempty"`
	Encrypted string   `json:"encrypted_content"`
}

// keepOrder returns the order of the items as an opaque block; nil if the text and the calls already
// imply it. keepOrder drops a thought that no item follows: OpenAI
// rejects a thought without the item that it led to.
func keepOrder(steps []itemStep, issuer string) []model.Opaque {
	for len(steps) > 0 && steps[len(steps)-1].Thought != nil {
		steps = steps[:len(steps)-1]
	}
	telling := false
	for i, s := range steps {
		telling = telling || s.Thought != nil || s.Phase != "" || !s.Call && i > 0
	}
	if !telling {
		return nil
	}
	data, err := json.Marshal(steps)
	if err != nil {
		return nil // strings and numbers always encode
	}
	return []model.Opaque{{Issuer: issuer, Kind: itemsKind, Data: data}}
}

// stepsOf are the items of a message in the order in which this issuer sent
// them. If the message was changed since, it is one text and then its calls.
func stepsOf(m model.Message, issuer string) []itemStep {
	for _, o := range m.Opaque {
		var steps []itemStep
		if o.Issuer == issuer && o.Kind == itemsKind && json.Unmarshal(o.Data, &steps) == nil && orderFits(steps, m) {
			return steps
		}
	}
	return append([]itemStep{{Text: len(m.Text)}}, slices.Repeat([]itemStep{{Call: true}}, len(m.Calls))...)
}

// orderFits reports whether an order places the whole text and every call once, and
// ends in no thought.
func orderFits(steps []itemStep, m model.Message) bool {
	text, calls, said := m.Text, 0, false
	for i, s := range steps {
		switch {
		case s.Call:
			calls++
		case s.Thought != nil:
			if i == len(steps)-1 || s.Thought.ID == "" || s.Thought.Encrypted == "" {
				return false
			}
		default:
			if said && !strings.HasPrefix(text, between) {
				return false
			} else if said {
				text = text[len(between):]
			}
			if s.Text <= 0 || s.Text > len(text) || !utf8.ValidString(text[:s.Text]) || modelhttp.IsBlank(text[:s.Text]) {
				return false
			}
			text, said = text[s.Text:], true
		}
	}
	return text == "" && calls == len(m.Calls)
}

// conversationItems renders messages; consecutive ones of the user become one.
func conversationItems(messages []model.Message, issuer string) []inputItem {
	var out []inputItem
	var said []string // by the user, not yet in out
	var shown []inputPart
	flush := func() {
		if len(said) > 0 || len(shown) > 0 {
			out = append(out, askedMessage(shown, strings.Join(said, between)))
			said, shown = nil, nil
		}
	}
	for _, m := range messages {
		switch m.Role {
		case model.User:
			shown = append(shown, mediaItems(m)...)
			if !modelhttp.IsBlank(m.Text) {
				said = append(said, m.Text)
			}
		case model.Assistant:
			if items := assistantItems(m, issuer); len(items) > 0 {
				flush()
				out = append(out, items...)
			}
		case model.ToolRole:
			flush()
			for _, r := range m.Results {
				out = append(out, callOutput(r))
			}
		}
	}
	flush()
	return out
}

func callOutput(r model.ToolResult) inputItem {
	return inputItem{Type: itemOutput, CallID: modelhttp.CallID(callPrefix, r.Call), Output: resultText(r)}
}

// assistantItems renders an assistant message in the order it came in.
func assistantItems(m model.Message, issuer string) []inputItem {
	var out []inputItem
	text, calls, said := m.Text, m.Calls, false
	for _, s := range stepsOf(m, issuer) {
		switch {
		case s.Call:
			out = append(out, inputItem{Type: itemCall, CallID: modelhttp.CallID(callPrefix, calls[0].ID), Name: modelhttp.CallName(calls[0].Name),
				Arguments: string(modelhttp.CallArguments(calls[0]))})
			calls = calls[1:]
		case s.Thought != nil:
			out = append(out, s.Thought.inputItem())
		default:
			if said {
				text = text[len(between):]
			}
			if part := text[:s.Text]; !modelhttp.IsBlank(part) {
				out = append(out, inputItem{Role: roleAssistant, Content: part, Phase: s.Phase})
			}
			text, said = text[s.Text:], true
		}
	}
	return out
}

func (t reasoningItem) inputItem() inputItem {
	item := inputItem{Type: itemThought, ID: t.ID, Summary: []summaryText{}, Encrypted: t.Encrypted}
	for _, text := range t.Summary {
		item.Summary = append(item.Summary, summaryText{"summary_text", text})
	}
	return item
}
