package cli

import (
	"strings"

	"github.com/troupe-run/troupe/internal/term"
)

// page is a text of several sections, as wide as the terminal.
type page struct {
	style term.Style
	width int
	lines []string
}

func (a *console) page() *page {
	width, _ := term.Size(a.out)
	return &page{style: a.style, width: width}
}

// lines writes lines to stdout. They are clean.
func (a *console) lines(lines []string) error {
	return a.put([]byte(strings.Join(lines, "\n") + "\n"))
}

// head begins a section.
func (p *page) head(title string) {
	if len(p.lines) > 0 {
		p.lines = append(p.lines, "")
	}
	p.lines = append(p.lines, p.style.Bold(title))
}

// pairs adds names and what they say; empty ones are left out.
func (p *page) pairs(pairs ...[2]string) {
	for i := range pairs {
		pairs[i][1] = cleanText(pairs[i][1])
	}
	p.lines = append(p.lines, term.Pairs(p.style, pairs, p.width)...)
}

// cleanText keeps the lines of a text and nothing else that a terminal acts on.
func cleanText(text string) string { return strings.Trim(term.Clean(text), "\n") }

// line adds one line, cut at the edge.
func (p *page) line(text string) { p.lines = append(p.lines, term.Cut(text, p.width)) }

// column is one column of a table: numbers stand at the right.
type column struct {
	name  string
	right bool
}

// left and right make columns.
func left(names ...string) []column {
	list := make([]column, len(names))
	for i, n := range names {
		list[i].name = n
	}
	return list
}

func right(names ...string) []column {
	list := left(names...)
	for i := range list {
		list[i].right = true
	}
	return list
}

// table adds rows under headings. The last column takes what room is left.
func (p *page) table(head []column, rows [][]string) {
	p.lines = append(p.lines, tableLines(p.style, head, rows, p.width)...)
}

// tableLines draws a table: no line is wider than width.
func tableLines(s term.Style, head []column, rows [][]string, width int) []string {
	widths := make([]int, len(head))
	names := make([]string, len(head))
	for i, c := range head {
		names[i] = c.name
	}
	for _, r := range append([][]string{names}, rows...) {
		for i, cell := range r {
			widths[i] = max(widths[i], term.Width(cell))
		}
	}
	draw := func(cells []string) string {
		var b strings.Builder
		for i, cell := range cells {
			switch {
			case head[i].right:
				b.WriteString(strings.Repeat(" ", max(0, widths[i]-term.Width(cell))) + cell)
			case i < len(cells)-1:
				b.WriteString(term.Pad(cell, widths[i]))
			default:
				b.WriteString(cell)
			}
			if i < len(cells)-1 {
				b.WriteString("  ")
			}
		}
		return strings.TrimRight(term.Cut(strings.TrimRight(b.String(), " "), width), " ")
	}
	lines := []string{s.Bold(draw(names))}
	for _, r := range rows {
		lines = append(lines, draw(r))
	}
	return lines
}
