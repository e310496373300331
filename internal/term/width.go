package term

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// columns measures text by grapheme clusters, as terminals draw it; colours take no column.
var columns = displaywidth.Options{ControlSequences: true}

// plainColumns measures text without colours. To cut, it reads no further than the cut.
var plainColumns displaywidth.Options

// Width returns how many columns clean text takes; colours take none.
func Width(text string) int { return columns.String(text) }

// Truncate shortens text to at most width columns, with an ellipsis where it omits something. It
// keeps the codes behind the cut, which close colours.
func Truncate(text string, width int) string {
	if width <= 0 && Width(text) > 0 {
		return ""
	}
	return columns.TruncateString(text, width, "…")
}

// Pad is Truncate, padded with spaces.
func Pad(text string, width int) string {
	text = Truncate(text, width)
	return text + strings.Repeat(" ", max(0, width-Width(text)))
}
