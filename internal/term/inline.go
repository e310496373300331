package term

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// inlineStyle is how a part of a paragraph is drawn.
type inlineStyle int

const (
	plainSpan inlineStyle = iota
	strongSpan
	codeSpan
)

// inlineSpan is a part of a paragraph in one style, without its marks.
type inlineSpan struct {
	text  string
	style inlineStyle
}

// inlineMark is a part of a paragraph that is shown differently from its source.
type inlineMark struct {
	at, end int    // the bytes that it replaces
	shown   string // what is shown instead
	style   inlineStyle
	strong  int // +1: strong text begins behind it; -1: strong text ends
}

const (
	codeMark = '`'
	// linkBytesMax is the longest address of a link; a longer one stays as it was written.
	linkBytesMax = 2 << 10
	// strongMarkBytes is the length of ** and __.
	strongMarkBytes = 2
)

// parseInline finds code, strong text and links in a paragraph. What may as well be no Markdown (2**3, __init__,
// src/**) stays as it was written: an answer must not lose characters. The time is linear in the text.
func parseInline(text string) []inlineSpan {
	unread := []byte(text) // what was recognized is overwritten, so that no later step reads it
	marks := markCode(text, unread)
	marks = append(marks, markLinks(text, unread)...)
	marks = append(marks, markStrong(unread)...)
	slices.SortFunc(marks, func(a, b inlineMark) int { return a.at - b.at })
	var spans []inlineSpan
	add := func(text string, style inlineStyle) {
		if text != "" {
			spans = append(spans, inlineSpan{text, style})
		}
	}
	strong, at := 0, 0
	for _, m := range marks {
		style := plainSpan
		if strong > 0 {
			style = strongSpan
		}
		add(text[at:m.at], style)
		add(m.shown, max(style, m.style))
		strong, at = strong+m.strong, m.end
	}
	add(text[at:], plainSpan)
	return spans
}

// markCode finds code: between two runs of backticks of the same length.
func markCode(text string, unread []byte) []inlineMark {
	type run struct{ at, bytes int }
	var runs []run
	sameLength := map[int][]int{} // indexes of runs, by length
	for i := 0; i < len(text); i++ {
		if text[i] != codeMark {
			continue
		}
		r := run{at: i}
		for i < len(text) && text[i] == codeMark {
			i, r.bytes = i+1, r.bytes+1
		}
		sameLength[r.bytes] = append(sameLength[r.bytes], len(runs))
		runs = append(runs, r)
	}
	var marks []inlineMark
	for i := 0; i < len(runs); i++ {
		open := runs[i]
		later := sameLength[open.bytes]
		for len(later) > 0 && later[0] <= i {
			later = later[1:]
		}
		sameLength[open.bytes] = later
		if len(later) == 0 || open.at > 0 && text[open.at-1] == '\\' {
			continue
		}
		i = later[0]
		end := runs[i].at + open.bytes
		code := text[open.at+open.bytes : runs[i].at]
		if len(code) > 1 && code[0] == ' ' && code[len(code)-1] == ' ' && strings.Trim(code, " ") != "" {
			code = code[1 : len(code)-1]
		}
		marks = append(marks, inlineMark{at: open.at, end: end, shown: code, style: codeSpan})
		overwrite(unread[open.at:end], codeMark)
	}
	return marks
}

func overwrite(part []byte, by byte) {
	for i := range part {
		part[i] = by
	}
}

// markLinks finds [text](address), which is shown as: text (address).
func markLinks(text string, unread []byte) []inlineMark {
	var marks []inlineMark
	open := -1
	for i := 0; i < len(unread); i++ {
		switch unread[i] {
		case '[':
			open = i
			if i > 0 && (isWordByte(rune(unread[i-1])) || bytes.IndexByte([]byte(`])!\`), unread[i-1]) >= 0) { // a[i](x)
				open = -1
			}
		case ']':
			begin := open
			open = -1
			bytesOfAddress := addressBytes(unread[i+1:])
			if begin < 0 || i == begin+1 || bytesOfAddress == 0 {
				continue
			}
			address := text[i+2 : i+2+bytesOfAddress]
			end := i + len("](") + bytesOfAddress + len(")")
			shown := " (" + address + ")"
			if address == text[begin+1:i] {
				shown = ""
			}
			marks = append(marks, inlineMark{at: begin, end: begin + 1}, inlineMark{at: i, end: end, shown: shown})
			overwrite(unread[i:end], ')')
			i = end - 1
		}
	}
	return marks
}

// addressBytes is the length of the address in "(address)…"; 0: there is none.
func addressBytes(text []byte) int {
	if len(text) == 0 || text[0] != '(' {
		return 0
	}
	text = text[1:min(len(text), linkBytesMax+2)]
	end := bytes.IndexAny(text, ") \t\n`")
	if end < 0 || text[end] != ')' {
		return 0
	}
	return end
}

// markStrong pairs the marks ** and __. A mark closes the nearest one that is open.
func markStrong(unread []byte) []inlineMark {
	var marks []inlineMark
	opened := map[byte]int{} // the place of the open mark
	for i := 0; i < len(unread); {
		kind, end := unread[i], i
		if kind != '*' && kind != '_' {
			i++
			continue
		}
		for end < len(unread) && unread[end] == kind {
			end++
		}
		at := i
		i = end
		if end-at != strongMarkBytes {
			continue
		}
		opens, closes := flanks(kind, runeBefore(unread[:at]), runeBehind(unread[end:]))
		open, isOpen := opened[kind]
		switch {
		case closes && isOpen:
			delete(opened, kind)
			for other, place := range opened { // it would overlap
				if place > open {
					delete(opened, other)
				}
			}
			if kind == '_' && isWord(unread[open+strongMarkBytes:at]) {
				continue // __init__
			}
			marks = append(marks, inlineMark{at: open, end: open + strongMarkBytes, strong: 1}, inlineMark{at: at, end: end, strong: -1})
		case opens:
			opened[kind] = at
		}
	}
	return marks
}

// flanks decides by the neighbours of a mark whether strong text may begin or end there. It is stricter than
// CommonMark where ** is more likely an operator or a part of a path.
func flanks(kind byte, before, behind rune) (opens, closes bool) {
	left := !unicode.IsSpace(behind) && (!isPunct(behind) || unicode.IsSpace(before) || isPunct(before))
	right := !unicode.IsSpace(before) && (!isPunct(before) || unicode.IsSpace(behind) || isPunct(behind))
	switch {
	case before == '\\', isWordByte(before) && isWordByte(behind): // \**, 2**3, a__b
		return false, false
	case kind == '_':
		return left && (!right || isPunct(before)), right && (!left || isPunct(behind))
	}
	return left && behind != '/' && !strings.ContainsRune(")]}", before), right && before != '/'
}

// runeBefore is the last rune of a text; a space at the beginning of a paragraph.
func runeBefore(text []byte) rune {
	if len(text) == 0 {
		return ' '
	}
	r, _ := utf8.DecodeLastRune(text)
	return r
}

// runeBehind is the first rune of a text; a space at the end of a paragraph.
func runeBehind(text []byte) rune {
	if len(text) == 0 {
		return ' '
	}
	r, _ := utf8.DecodeRune(text)
	return r
}

func isPunct(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// isWordByte reports whether r may be a part of a name in a program. Other letters do not count: Chinese and Japanese
// have no spaces around strong text.
func isWordByte(r rune) bool {
	return r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func isWord(text []byte) bool {
	return bytes.IndexFunc(text, func(r rune) bool { return !isWordByte(r) }) < 0
}

// wrapInline wraps a paragraph and draws its spans. A span that is broken has its style on each line.
func (s Style) wrapInline(text, first, next string, width int) []string {
	spans := parseInline(strings.ReplaceAll(text, "\t", "    "))
	var plain strings.Builder
	for _, span := range spans {
		plain.WriteString(span.text)
	}
	unwritten := plain.String()
	lines := Wrap(unwritten, max(doingMin, width-Width(first)))
	for i, line := range lines {
		var b strings.Builder
		if b.WriteString(first); i == 0 {
			first = next
		}
		skipped := len(unwritten) - len(strings.TrimLeft(unwritten, " ")) // Wrap drops spaces at the end of a line
		_, spans = s.takeSpans(spans, skipped)
		drawn, rest := s.takeSpans(spans, len(line))
		b.WriteString(drawn)
		lines[i], spans, unwritten = b.String(), rest, unwritten[skipped+len(line):]
	}
	return lines
}

// takeSpans draws the first n bytes of spans, and returns the spans that are left. It changes the spans.
func (s Style) takeSpans(spans []inlineSpan, n int) (drawn string, rest []inlineSpan) {
	var b strings.Builder
	for n > 0 {
		part := spans[0].text[:min(n, len(spans[0].text))]
		switch spans[0].style {
		case codeSpan:
			b.WriteString(s.Cyan(part))
		case strongSpan:
			b.WriteString(s.Bold(part))
		case plainSpan:
			b.WriteString(part)
		}
		n -= len(part)
		if spans[0].text = spans[0].text[len(part):]; spans[0].text == "" {
			spans = spans[1:]
		}
	}
	return b.String(), spans
}
