package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/toolset/builtin"
)

// Bounds of a change that is shown.
const (
	changedBytesMax = 4 << 20 // of a file that is compared
	cellsMax        = 1 << 22 // of the table by which lines are compared
	contextLines    = 3
)

// Difference is the difference of two texts of a file in the unified form; "": there is none. Characters that a
// terminal acts on are made visible.
func Difference(name string, before, after *string) string {
	shown := permission.VisibleLine(name)
	from, to := shown, shown
	var a, b []string
	if before == nil {
		from = "/dev/null"
	} else {
		a = splitLines(*before)
	}
	if after == nil {
		to = "/dev/null"
	} else {
		b = splitLines(*after)
	}
	body := diffLines(a, b)
	if body == "" && (before == nil) == (after == nil) {
		return ""
	}
	return permission.Visible(fmt.Sprintf("--- %s\n+++ %s\n", from, to) + body)
}

// showChange shows what a call would change in a file, as a difference in the unified form. It shows the
// arguments where the file cannot be read.
func showChange(dir, tool, args string) string {
	var a struct{ Path, Content, Old, New string }
	if json.Unmarshal([]byte(args), &a) != nil || dir == "" {
		return permission.Show(tool, args)
	}
	name, err := builtin.PathBelow(dir, a.Path)
	if err != nil {
		return permission.Show(tool, args)
	}
	old, err := safefile.ReadBelow(dir, name, changedBytesMax)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing || !utf8.Valid(old) {
		return permission.Show(tool, args)
	}
	text, next := string(old), a.Content
	if tool == "edit_file" {
		if a.Old == "" || strings.Count(text, a.Old) != 1 {
			return permission.Show(tool, args) // lines that end in CR LF
		}
		next = strings.Replace(text, a.Old, a.New, 1)
	}
	shown := permission.VisibleLine(name)
	head := fmt.Sprintf("--- %s\n+++ %s\n", shown, shown)
	if missing {
		head = fmt.Sprintf("--- /dev/null\n+++ %s (new file)\n", shown)
	}
	body := diffLines(splitLines(text), splitLines(next))
	if body == "" {
		body = "(no change)\n"
	}
	return permission.Visible(head + body)
}

// findCertainFailure returns why an edit fails whatever a person decides: the file does not exist, or its text has not
// exactly one place to change. A call of which nothing is certain is put to the person.
func findCertainFailure(dir, tool, args string) string {
	var a struct{ Path, Old, New string }
	if tool != "edit_file" || dir == "" || json.Unmarshal([]byte(args), &a) != nil {
		return ""
	}
	name, err := builtin.PathBelow(dir, a.Path)
	if err != nil {
		return ""
	}
	text, err := safefile.ReadBelow(dir, name, changedBytesMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return permission.VisibleLine(name) + " does not exist"
	case err != nil || !utf8.Valid(text):
		return ""
	}
	if err := builtin.CheckEdit(text, a.Old, a.New); err != nil {
		return permission.VisibleLine(name) + ": " + err.Error()
	}
	return ""
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

// edit is one line of a difference.
type edit struct {
	mark byte // ' ', '-' or '+'
	line string
}

// diffLines returns the difference of two texts in the unified form, without its head.
func diffLines(a, b []string) string {
	edits := compareLines(a, b)
	var out strings.Builder
	for from := 0; from < len(edits); {
		first := slices.IndexFunc(edits[from:], func(e edit) bool { return e.mark != ' ' })
		if first < 0 {
			break
		}
		first += from
		end, quiet := first, 0
		for i := first; i < len(edits) && quiet <= 2*contextLines; i++ {
			if quiet++; edits[i].mark != ' ' {
				end, quiet = i+1, 0
			}
		}
		begin, stop := max(from, first-contextLines), min(len(edits), end+contextLines)
		writeHunk(&out, edits, begin, stop)
		from = stop
	}
	return out.String()
}

func writeHunk(out *strings.Builder, edits []edit, begin, stop int) {
	count := func(list []edit, not byte) (n int) {
		for _, e := range list {
			if e.mark != not {
				n++
			}
		}
		return n
	}
	hunk := edits[begin:stop]
	place := func(not byte) string { // a part without lines stands behind the line before it
		n := count(hunk, not)
		return fmt.Sprintf("%d,%d", count(edits[:begin], not)+min(n, 1), n)
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", place('+'), place('-'))
	for _, e := range hunk {
		out.WriteByte(e.mark)
		out.WriteString(strings.TrimSuffix(e.line, "\n"))
		out.WriteByte('\n')
		if !strings.HasSuffix(e.line, "\n") {
			out.WriteString("\\ No newline at end of file\n")
		}
	}
}

// compareLines returns the lines of both texts in order. If they have too many different lines to be
// compared, all lines of the first are removed and all of the second added.
func compareLines(a, b []string) (edits []edit) {
	add := func(mark byte, lines []string) {
		for _, l := range lines {
			edits = append(edits, edit{mark, l})
		}
	}
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	add(' ', a[:head])
	if (len(x)+1)*(len(y)+1) > cellsMax {
		add('-', x)
		add('+', y)
	} else {
		edits = append(edits, alignLines(x, y)...)
	}
	add(' ', a[len(a)-tail:])
	return edits
}

// alignLines compares lines by their longest common subsequence.
func alignLines(x, y []string) (edits []edit) {
	width := len(y) + 1
	table := make([]int32, (len(x)+1)*width)
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				table[i*width+j] = table[(i+1)*width+j+1] + 1
			} else {
				table[i*width+j] = max(table[(i+1)*width+j], table[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			edits = append(edits, edit{' ', x[i]})
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && table[(i+1)*width+j] >= table[i*width+j+1]:
			edits = append(edits, edit{'-', x[i]})
			i++
		default:
			edits = append(edits, edit{'+', y[j]})
			j++
		}
	}
	return edits
}
