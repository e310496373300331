// Package term draws in a terminal: colours, widths, one event as one line, the tree of a
// run redrawn in place. It makes text of models, tools and files harmless before it is
// drawn (Clean).
package term

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

// ErrColor: the word is not a choice of colour.
var ErrColor = errors.New("term: color is auto, always or never")

// CanDraw reports whether a file is a terminal that can be drawn on.
func CanDraw(f *os.File, getenv func(string) string) bool {
	return getenv("TERM") != "dumb" && IsTTY(f)
}

// IsTTY reports whether a file is a terminal at all.
func IsTTY(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// ColorWords are the values of a setting about colour.
var ColorWords = []string{"auto", "always", "never"}

// UseColor decides whether to write colours: mode is auto, always or never, and
// auto asks the environment (NO_COLOR, CLICOLOR_FORCE, TERM) before the terminal.
func UseColor(mode string, tty bool, getenv func(string) string) (bool, error) {
	switch mode {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto", "":
	default:
		return false, fmt.Errorf("%w, not %q", ErrColor, mode)
	}
	if getenv("NO_COLOR") != "" {
		return false, nil
	}
	if force := getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true, nil
	}
	return tty && getenv("TERM") != "dumb", nil
}

// Size returns the width and height of a terminal, or a usual size if the terminal does not
// report one.
func Size(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return widthDefault, heightDefault
	}
	return width, height
}

const (
	widthDefault  = 80
	heightDefault = 24
)

// Style colours text, or leaves it unchanged.
type Style struct{ On bool }

func (s Style) applyCode(code, text string) string {
	if !s.On || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold, Dim and the colours, for text that is clean.
func (s Style) Bold(text string) string { return s.applyCode("1", text) }

// Dim marks less important text.
func (s Style) Dim(text string) string { return s.applyCode("2", text) }

// Red marks errors and failures.
func (s Style) Red(text string) string { return s.applyCode("31", text) }

// Green marks finished work.
func (s Style) Green(text string) string { return s.applyCode("32", text) }

// Yellow marks what needs the user's attention.
func (s Style) Yellow(text string) string { return s.applyCode("33", text) }

// Cyan marks names.
func (s Style) Cyan(text string) string { return s.applyCode("36", text) }
