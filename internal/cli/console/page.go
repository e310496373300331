package console

import (
	"strings"

	"github.com/troupe-run/troupe/internal/term"
)

// Unbounded is the width of a text that no terminal shows: nothing of it is wrapped or cut.
const Unbounded = 1 << 20

// Page is a text of several sections, as wide as the terminal.
type Page struct {
	Style term.Style
	Width int
	Lines []string
}

// NewPage makes a page as wide as the terminal.
func (c *Console) NewPage() *Page { return &Page{Style: c.Style, Width: c.outWidth()} }

// NewTextPage makes a page whose texts are wrapped: as wide as the terminal, or as a usual one.
func (c *Console) NewTextPage() *Page {
	width, _ := term.Size(c.Out)
	return &Page{Style: c.Style, Width: width}
}

// outWidth is the width of stdout.
func (c *Console) outWidth() int {
	if !term.IsTTY(c.Out) {
		return Unbounded
	}
	width, _ := term.Size(c.Out)
	return width
}

// PrintLines writes lines to stdout. They are clean.
func (c *Console) PrintLines(lines []string) error {
	return c.Write([]byte(strings.Join(lines, "\n") + "\n"))
}

// AddHeading begins a section.
func (p *Page) AddHeading(title string) {
	if len(p.Lines) > 0 {
		p.Lines = append(p.Lines, "")
	}
	p.Lines = append(p.Lines, p.Style.Bold(title))
}

// AddPairs adds names and what they say; empty ones are left out.
func (p *Page) AddPairs(pairs ...[2]string) {
	for i := range pairs {
		pairs[i][1] = CleanText(pairs[i][1])
	}
	p.Lines = append(p.Lines, term.FormatPairs(p.Style, pairs, p.Width)...)
}

// AddLine adds one line, cut at the edge.
func (p *Page) AddLine(text string) { p.Lines = append(p.Lines, term.Truncate(text, p.Width)) }

// Column is one column of a table: numbers stand at the right.
type Column struct {
	name  string
	right bool
}

// Left and right make columns.
func Left(names ...string) []Column {
	list := make([]Column, len(names))
	for i, n := range names {
		list[i].name = n
	}
	return list
}

// Right makes columns whose cells stand at the right.
func Right(names ...string) []Column {
	list := Left(names...)
	for i := range list {
		list[i].right = true
	}
	return list
}

// AddTable adds rows under headings: one line of headings and one line for each row, whatever fits into it. The last
// column takes what room is left.
func (p *Page) AddTable(head []Column, rows [][]string) {
	p.Lines = append(p.Lines, drawTable(p.Style, head, rows, p.Width)...)
}

// drawTable draws a table: no line is wider than width.
func drawTable(s term.Style, head []Column, rows [][]string, width int) []string {
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
		return strings.TrimRight(term.Truncate(strings.TrimRight(b.String(), " "), width), " ")
	}
	lines := []string{s.Bold(draw(names))}
	for _, r := range rows {
		lines = append(lines, draw(r))
	}
	return lines
}
