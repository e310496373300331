package top

import (
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/term"
)

// prompt asks the person for a line of text, or for one of several keys.
type prompt struct {
	label string
	text  string
	// choices are the keys that answer; nil: a line of text does.
	choices []choice
	// typed is called for each change of the text, done for the whole; "done" may open another prompt.
	typed func(m *Model, text string)
	done  func(m *Model, text string) []Effect
	// left is called if the person leaves it.
	left func(m *Model)
}

// choice is one key that answers a prompt.
type choice struct {
	key, what string
	do        func(m *Model) []Effect
}

// handlePromptKey handles a key while a prompt is open.
func handlePromptKey(m *Model, k Key) []Effect {
	p := m.prompt
	if k.Name == "ctrl+c" {
		return []Effect{Quit{}}
	}
	if k.Name == "esc" {
		leavePrompt(m)
		return nil
	}
	if p.choices != nil {
		for _, c := range p.choices {
			if c.key == k.Name {
				m.prompt = nil
				return c.do(m)
			}
		}
		if k.Name == "n" {
			leavePrompt(m)
		}
		return nil
	}
	switch k.Name {
	case "enter":
		m.prompt = nil
		return p.done(m, strings.TrimSpace(p.text))
	default:
		p.setText(m, editText(p.text, k))
	}
	return nil
}

// handlePaste adds pasted text to the open prompt. Without one it does nothing: pasted text is no key.
func handlePaste(m *Model, text string) {
	if m.prompt == nil && m.form != nil {
		m.form.paste(text)
		return
	}
	if m.prompt != nil && m.prompt.choices == nil {
		m.prompt.setText(m, m.prompt.text+term.CleanLine(clip.Prefix(text, inputBytesMax)))
	}
}

func (p *prompt) setText(m *Model, text string) {
	p.text = clip.Prefix(text, inputBytesMax)
	if p.typed != nil {
		p.typed(m, p.text)
	}
}

func leavePrompt(m *Model) {
	p := m.prompt
	m.prompt = nil
	if p.left != nil {
		p.left(m)
	}
}

// draw returns the prompt in one line: of a long text its end, where the person types.
func (p *prompt) draw(s term.Style, width int) string {
	label := s.Yellow(cleanLine(p.label))
	if p.choices != nil {
		return term.Truncate(label, width)
	}
	text := []rune(cleanLine(strings.TrimRight(p.text, " ")) + strings.Repeat(" ", len(p.text)-len(strings.TrimRight(p.text, " "))))
	room := max(1, width-term.Width(label)-2)
	for len(text) > 0 && term.Width(string(text)) > room {
		text = text[max(1, len(text)/promptStep):]
	}
	return term.Truncate(label+" "+string(text)+"▏", width)
}

// promptStep: a text that is too wide loses this part of its beginning at a time.
const promptStep = 64

// cleanLine makes a text one harmless line; of a long one it is the beginning, which is more than a line shows.
func cleanLine(text string) string {
	if len(text) > lineBytesMax {
		text = clip.Prefix(text, lineBytesMax) + "…"
	}
	return term.CleanLine(text)
}
