package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-run/troupe/agent/spec"
)

// CleanText makes untrusted text harmless for a terminal: it replaces control characters,
// characters that change the writing direction, invisible characters and invalid UTF-8 by
// visible escapes. Newlines and tabs stay.
func CleanText(text string) string {
	return escapeHarmful(text, func(r rune) bool { return r == '\n' || r == '\t' })
}

// CleanLine is CleanText for one line: newlines and tabs become single spaces.
func CleanLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
	return strings.TrimSpace(escapeHarmful(text, func(rune) bool { return false }))
}

// QuestionLine is CleanLine for a text that a person decides about: it shows where a line ends, so that the second line
// of a command does not look like an argument of the first.
func QuestionLine(text string) string { return CleanLine(lineEnds.Replace(strings.TrimSpace(text))) }

// QuestionGist is QuestionLine for a place with little room: of a question about a call it has what the call would do.
func QuestionGist(text string) string {
	shows, isCall := strings.CutPrefix(strings.TrimSpace(text), spec.CallQuestion+"\n")
	if _, diff, isChange := strings.Cut(shows, "\n+++ "); isCall && isChange && strings.HasPrefix(shows, "--- ") {
		file, _, _ := strings.Cut(diff, "\n")
		return "write " + CleanLine(file)
	}
	return QuestionLine(shows)
}

var lineEnds = strings.NewReplacer("\r\n", " ⏎ ", "\n", " ⏎ ", "\r", " ⏎ ")

func escapeHarmful(text string, keep func(rune) bool) string {
	harmless := true
	for _, r := range text {
		if isHarmful(r) && !keep(r) || r == utf8.RuneError {
			harmless = false
			break
		}
	}
	if harmless {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				fmt.Fprintf(&b, `\x%02x`, text[i])
				continue
			}
			b.WriteRune(r)
		case !isHarmful(r) || keep(r):
			b.WriteRune(r)
		default:
			b.WriteString(escapeRune(r))
		}
	}
	return b.String()
}

func escapeRune(r rune) string {
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// isHarmful reports whether r is a control character (C0, DEL, C1), a format character (bidi
// controls, zero width, tags) or another one that is not seen, a line or paragraph separator, or for private use. The
// joiners that emoji and scripts need are not, nor the selectors of the two forms of an emoji.
func isHarmful(r rune) bool {
	switch r {
	case '\u200c', '\u200d', '\ufe0e', '\ufe0f':
		return false
	case '\u2028', '\u2029', '\u2800': // the last one is a Braille pattern without dots
		return true
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// CleanJSON makes a JSON document harmless for a terminal without changing its meaning:
// harmful characters become JSON escapes.
func CleanJSON(doc []byte) []byte {
	var b strings.Builder
	for _, r := range string(doc) {
		switch {
		case r == '\n', !isHarmful(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			hi, lo := surrogatePair(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		}
	}
	return []byte(b.String())
}

func surrogatePair(r rune) (hi, lo rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}

// ModelName is the route of a model as people read it: the path of a script has one slash before it.
func ModelName(route string) string {
	if path, isScript := strings.CutPrefix(route, "script//"); isScript {
		route = "script/" + path
	}
	return CleanLine(route)
}
