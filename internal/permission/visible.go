package permission

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible returns a text for people in which nothing is hidden: control characters, and characters that
// change the order of others or take no room, are written as escapes. Line breaks and tabs stay.
func Visible(text string) string {
	if isPlain(text) {
		return text
	}
	var b strings.Builder
	for _, c := range strings.ToValidUTF8(text, `\ufffd`) {
		switch {
		case c == '\n' || c == '\t':
			b.WriteRune(c)
		case c < ' ' || c == 0x7f:
			_, _ = fmt.Fprintf(&b, `\x%02x`, c)
		case isUnseen(c) && c > 0xffff:
			_, _ = fmt.Fprintf(&b, `\U%08x`, c)
		case isUnseen(c):
			_, _ = fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// isPlain reports whether a text has only printable ASCII characters, line breaks and tabs.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// VisibleLine is Visible for a text that stands within one line, such as the name of a file: line breaks and tabs are
// escapes, too, so that no name can pretend to be the next line.
func VisibleLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Visible(text))
}

// isUnseen reports whether a person may not see a character as what it is: it is no graphic one, has no width, looks
// like a space, or changes the order or the form of those around it.
func isUnseen(c rune) bool {
	return c != ' ' && (!unicode.IsGraphic(c) || unicode.In(c, unicode.Zs, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Bidi_Control, blank))
}

// blank are the characters that most fonts draw as an empty place, or not at all, and that no
// property of Unicode names.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // a Braille pattern without dots
	},
	R32: []unicode.Range32{
		{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, // the filler of Khitan
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // a note without a head
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}, // tags, and what is reserved for such characters
	},
	LatinOffset: 0,
}
