package top

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/term"
)

// form asks the person for several values at once. It stays open until its request has succeeded.
type form struct {
	title  string
	notes  []string
	fields []field
	at     int
	word   string // what ⏎ does
	// done sends the request of the values, one for each field.
	done    func(m *Model, values []string) []Effect
	sent    Effect // the request under way; nil: none
	problem string
}

// field is one value of a form.
type field struct {
	label, hint string
	text        string
	isRequired  bool
	rows        int // lines that are drawn, at most
}

// openForm shows a form in place of the view.
func (m *Model) openForm(f *form) []Effect {
	m.form, m.notice, m.noticeIsError = f, "", false
	return nil
}

// handleFormKey handles a key while a form is open.
func handleFormKey(m *Model, k Key) []Effect {
	f := m.form
	switch k.Name {
	case "ctrl+c":
		return []Effect{Quit{}}
	case "esc":
		m.form = nil
		return nil
	}
	if f.sent != nil {
		return nil // what it asks for is on its way
	}
	switch k.Name {
	case "up", "shift+tab":
		f.at = max(0, f.at-1)
	case "down", "tab":
		f.at = min(f.at+1, len(f.fields)-1)
	case "enter":
		return f.send(m)
	default:
		e := &f.fields[f.at]
		e.text = clip.Prefix(editText(e.text, k), formBytesMax)
	}
	return nil
}

// send sends the request of a form, or shows the field that must not be empty.
func (f *form) send(m *Model) []Effect {
	values := make([]string, len(f.fields))
	for i, e := range f.fields {
		values[i] = strings.TrimSpace(e.text)
		if e.isRequired && values[i] == "" {
			f.at, f.problem = i, e.label+" must not be empty"
			return nil
		}
	}
	f.problem = ""
	effects := f.done(m, values)
	if len(effects) > 0 {
		f.sent = effects[0]
	}
	return effects
}

// paste adds pasted text to the field of the cursor. Its line breaks stay: they send nothing.
func (f *form) paste(text string) {
	if f.sent == nil {
		e := &f.fields[f.at]
		e.text = clip.Prefix(e.text+strings.ToValidUTF8(text, "�"), formBytesMax)
	}
}

// editText returns a text after a key that edits its end.
func editText(text string, k Key) string {
	switch k.Name {
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(text)
		return text[:len(text)-size]
	case "ctrl+u":
		return ""
	case "ctrl+w":
		text = strings.TrimRight(text, " ")
		return text[:strings.LastIndexByte(text, ' ')+1]
	}
	return text + k.Text
}

const labelColumns = 18

// body draws the form in height lines: of a long form those around the selected field, and at the end what of the problem
// stands above the status line.
func (f *form) body(m *Model, height int) []string {
	problem := f.problemLines(m)
	problem = problem[:max(0, len(problem)-1)]
	height -= len(problem)
	lines, to := f.lines(m)
	if len(lines) > height {
		first := max(0, to-height)
		lines = lines[first : first+height]
	}
	for len(lines) < height {
		lines = append(lines, "")
	}
	for _, l := range problem {
		lines = append(lines, m.style.Red(l))
	}
	return lines
}

// lines draws the form; to is the line after the selected field. Of a long value it draws the end, where the person types.
func (f *form) lines(m *Model) (lines []string, to int) {
	s := m.style
	lines = []string{s.Bold(cleanLine(f.title))}
	for _, n := range f.notes {
		for _, l := range term.Wrap(cleanLine(n), m.width) {
			lines = append(lines, s.Dim(l))
		}
	}
	lines = append(lines, "")
	room := max(1, m.width-labelColumns-4)
	for i, e := range f.fields {
		for j, l := range e.draw(s, room, i == f.at) {
			label := ""
			if j == 0 {
				label = e.label
			}
			lines = append(lines, m.marked(i == f.at && j == 0, s.Dim(term.Pad(label, labelColumns))+" "+l))
		}
		if i == f.at {
			to = len(lines)
		}
	}
	return lines, to
}

// problemLines wraps the problem; the last line is the status line. Of a long problem it returns the beginning.
func (f *form) problemLines(m *Model) []string {
	if f.problem == "" {
		return nil
	}
	lines := term.Wrap(cleanLine(f.problem), m.width)
	if most := 1 + m.bodyHeight()/2; len(lines) > most {
		lines = lines[:most]
		lines[most-1] = term.Truncate(lines[most-1], m.width-1) + "…"
	}
	return lines
}

// statusLine is the last line of the problem, or where the form is.
func (f *form) statusLine(m *Model) string {
	if problem := f.problemLines(m); len(problem) > 0 {
		return m.style.Red(problem[len(problem)-1])
	}
	if f.sent != nil {
		return m.style.Dim("sending …")
	}
	if lines, _ := f.lines(m); len(lines) > m.bodyHeight() {
		return m.style.Dim(fmt.Sprintf("field %d of %d", f.at+1, len(f.fields)))
	}
	return ""
}

// draw returns the lines of a field, at most its rows.
func (e field) draw(s term.Style, room int, isSelected bool) []string {
	text := e.text
	if len(text) > lineBytesMax {
		text = strings.ToValidUTF8(text[len(text)-lineBytesMax:], "")
	}
	text = strings.ReplaceAll(cleanLine(strings.ReplaceAll(text, "\n", "⏎ ")), "\t", " ") + strings.Repeat(" ", len(text)-len(strings.TrimRight(text, " ")))
	if text == "" && !isSelected {
		return []string{s.Dim(term.Truncate(e.hint, room))}
	}
	lines := term.CutLines(text, max(1, room-1))
	if len(lines) == 0 {
		lines = []string{""}
	}
	lines = lines[max(0, len(lines)-max(1, e.rows)):]
	if isSelected {
		lines[len(lines)-1] += "▏"
		if text == "" {
			lines[0] += s.Dim(term.Truncate(e.hint, max(0, room-1)))
		}
	}
	return lines
}

// keys are what the bottom line says of a form.
func (f *form) keys() [][2]string {
	if f.sent != nil {
		return [][2]string{{"esc", "leave"}}
	}
	list := [][2]string{{"⏎", f.word}, {"↑↓", "field"}, {"ctrl+u", "clear"}, {"esc", "leave"}}
	if len(f.fields) == 1 {
		list = slices.Delete(list, 1, 2)
	}
	return list
}
