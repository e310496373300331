package term

import (
	"strings"
	"unicode"
)

// wideRanges are the ranges of characters that take two columns: East Asian wide and
// full width, and pictures.
var wideRanges = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x231b, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1},
		{Lo: 0x3041, Hi: 0xa4cf, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x17000, Hi: 0x18aff, Stride: 1}, {Lo: 0x1b000, Hi: 0x1b2ff, Stride: 1}, {Lo: 0x1f300, Hi: 0x1f64f, Stride: 1},
		{Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1}, {Lo: 0x1f900, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wideRanges, r):
		return 2
	}
	return 1
}

// Width returns how many columns clean text takes; colours take none.
func Width(text string) int {
	n := 0
	walkRunes(text, func(r rune, code bool) bool {
		if !code {
			n += runeWidth(r)
		}
		return true
	})
	return n
}

// Truncate shortens text to at most width columns, with an ellipsis where it omits something. It
// closes colours.
func Truncate(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	if width <= 0 {
		return ""
	}
	var b strings.Builder
	n, colored := 0, false
	walkRunes(text, func(r rune, code bool) bool {
		if code {
			colored = true
		} else if n += runeWidth(r); n > width-1 {
			return false
		}
		b.WriteRune(r)
		return true
	})
	b.WriteRune('…')
	if colored {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// Pad is Truncate, padded with spaces.
func Pad(text string, width int) string {
	text = Truncate(text, width)
	return text + strings.Repeat(" ", max(0, width-Width(text)))
}

// walkRunes calls each for every character and reports which characters belong to a colour.
func walkRunes(text string, each func(r rune, code bool) bool) {
	inside := false
	for _, r := range text {
		if r == 0x1b {
			inside = true
		}
		if !each(r, inside) {
			return
		}
		if inside && r >= 'a' && r <= 'z' {
			inside = false
		}
	}
}
