// Package term draws in a terminal: whether in colour, how wide, one event as
// one line, the tree of a run redrawn in place. Text of models, tools and files
// is made harmless before it is drawn (Clean).
package term

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

// ErrColor: the word is not a choice of colour.
var ErrColor = errors.New("term: color is auto, always or never")

// Is reports whether a file is a terminal that can be drawn on.
func Is(f *os.File, getenv func(string) string) bool {
	return getenv("TERM") != "dumb" && IsTTY(f)
}

// IsTTY reports whether a file is a terminal at all.
func IsTTY(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// Color decides whether to write colours: mode is auto, always or never, and
// auto asks the environment (NO_COLOR, CLICOLOR_FORCE, TERM) before the terminal.
func Color(mode string, tty bool, getenv func(string) string) (bool, error) {
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

// Size is the width and height of a terminal, or a usual one if it does not say.
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

// Style puts colours around text, or leaves it as it is.
type Style struct{ On bool }

func (s Style) wrap(code, text string) string {
	if !s.On || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold, Dim and the colours, for text that is clean.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

// Dim is for what matters less.
func (s Style) Dim(text string) string { return s.wrap("2", text) }

// Red is for what went wrong.
func (s Style) Red(text string) string { return s.wrap("31", text) }

// Green is for what is done.
func (s Style) Green(text string) string { return s.wrap("32", text) }

// Yellow is for what a person should look at.
func (s Style) Yellow(text string) string { return s.wrap("33", text) }

// Cyan is for names.
func (s Style) Cyan(text string) string { return s.wrap("36", text) }
