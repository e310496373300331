package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/jsonlog"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// formsMax is how many forms of lines one grep with group tells apart: about 20 MiB. Lines of further
// forms are counted together.
const formsMax = 20_000

// linePlace is the place of a line.
type linePlace struct {
	name string
	line int
}

// lineForm is the lines of one form: they differ only in numbers and ids, or, in a log of JSON lines,
// in anything but their level, message and error.
type lineForm struct {
	first, last linePlace
	text        string // of the first
	count       int
}

// formCounts counts the lines of each form. The zero value is empty.
type formCounts struct {
	forms   []*lineForm // in the order of their first lines
	byForm  map[string]*lineForm
	further int // lines of forms beyond formsMax
}

var (
	formWord = lazyregexp.New(`[0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]*`)
	codeWord = lazyregexp.New(`^[A-Z][A-Z_]*-?[0-9]+$`) // ORA-00942 is the message itself
)

// formOf is the form of a line: its words that have a digit do not count, unless they are codes.
func formOf(line string) string {
	return formWord.ReplaceAllStringFunc(line, func(word string) string {
		if codeWord.MatchString(word) {
			return word
		}
		return "#"
	})
}

// add counts a line.
func (c *formCounts) add(at linePlace, line []byte) {
	text := clipLine(line, grepLineShownMax)
	form := formOf(text)
	if r, ok := jsonlog.Parse(string(line)); ok && r.Message+r.Error != "" {
		form = "{" + r.Level.String() + "\x00" + formOf(r.Message) + "\x00" + formOf(r.Error)
	}
	if known := c.byForm[form]; known != nil {
		known.last = at
		known.count++
		return
	}
	if len(c.forms) == formsMax {
		c.further++
		return
	}
	if c.byForm == nil {
		c.byForm = map[string]*lineForm{}
	}
	f := &lineForm{first: at, last: at, text: text, count: 1}
	c.byForm[form], c.forms = f, append(c.forms, f)
}

// write writes the most frequent forms, at most linesMax lines, and returns how many it wrote.
func (c *formCounts) write(b *strings.Builder, linesMax int) (shown int) {
	slices.SortStableFunc(c.forms, func(x, y *lineForm) int { return cmp.Compare(y.count, x.count) })
	shown = min(len(c.forms), linesMax)
	for _, f := range c.forms[:shown] {
		fmt.Fprintf(b, "%s:%d:[%d×", printableName(f.first.name), f.first.line, f.count)
		if f.count > 1 {
			fmt.Fprintf(b, " to %s:%d", printableName(f.last.name), f.last.line)
		}
		fmt.Fprintf(b, "] %s\n", f.text)
	}
	return shown
}
