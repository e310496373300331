package term

import (
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

var delimiterCell = lazyregexp.New(`^:?-+:?$`)

const (
	columnGap     = 2  // columns between two columns of a table
	tableCellsMax = 20 // cells of a row; a table with more stays as it was written
)

// drawTable draws the lines of a Markdown table in at most width columns: its columns are padded, and cells that do not
// fit are wrapped. Lines that are no table, or whose columns would be too narrow, stay as they were written.
func (s Style) drawTable(lines []string, width int) []string {
	rows := make([][]string, len(lines))
	for i, line := range lines {
		rows[i] = splitCells(line)
	}
	if len(rows) < 2 || !isDelimiter(rows[1]) || len(rows[0]) > tableCellsMax {
		return lines
	}
	columns := len(rows[0])
	head, body := rows[0], rows[2:]
	widths := make([]int, columns)
	for _, row := range append([][]string{head}, body...) {
		for i := range min(columns, len(row)) {
			widths[i] = max(widths[i], Width(plainCell(row[i])))
		}
	}
	if !narrowColumns(widths, width-columnGap*(columns-1)) {
		return lines
	}
	drawn := s.drawRow(head, widths, true)
	total := columnGap * (columns - 1)
	for _, w := range widths {
		total += w
	}
	drawn = append(drawn, s.Dim(strings.Repeat("─", total)))
	for _, row := range body {
		drawn = append(drawn, s.drawRow(row, widths, false)...)
	}
	return drawn
}

// plainCell is the text of a cell without marks and colours.
func plainCell(cell string) string {
	var b strings.Builder
	for _, span := range parseInline(cell) {
		b.WriteString(span.text)
	}
	return b.String()
}

// splitCells returns the cells of a line; \| and a | within `code` separate none.
func splitCells(line string) []string {
	line = strings.TrimSpace(strings.ReplaceAll(line, "\t", "    "))
	line = strings.TrimPrefix(line, "|")
	var cells []string
	var b strings.Builder
	code := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '|':
			b.WriteByte('|')
			i++
		case c == '|' && !code:
			cells = append(cells, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			if c == codeMark {
				code = !code && strings.IndexByte(line[i+1:], codeMark) >= 0
			}
			b.WriteByte(c)
		}
	}
	if rest := strings.TrimSpace(b.String()); rest != "" {
		cells = append(cells, rest)
	}
	return cells
}

func isDelimiter(cells []string) bool {
	for _, c := range cells {
		if !delimiterCell.MatchString(c) {
			return false
		}
	}
	return len(cells) > 0
}

// narrowColumns makes the widest columns narrower until all fit; false if they would have fewer columns than doingMin.
func narrowColumns(widths []int, room int) bool {
	total := 0
	for _, w := range widths {
		total += w
	}
	for ; total > room; total-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= doingMin {
			return false
		}
		widths[widest]--
	}
	return true
}

// drawRow draws one row; a cell that is wider than its column takes several lines.
func (s Style) drawRow(row []string, widths []int, isHead bool) []string {
	cells, height := make([][]string, len(widths)), 1
	for i := range widths {
		if i < len(row) {
			cells[i] = s.wrapInline(row[i], "", "", max(widths[i], doingMin))
		}
		height = max(height, len(cells[i]))
	}
	lines := make([]string, height)
	for k := range lines {
		var b strings.Builder
		for i, w := range widths {
			text := ""
			if k < len(cells[i]) {
				text = cells[i][k]
			}
			pad := strings.Repeat(" ", max(0, w-Width(text))+columnGap)
			if isHead {
				text = s.Bold(text)
			}
			b.WriteString(text)
			if i < len(widths)-1 {
				b.WriteString(pad)
			}
		}
		lines[k] = strings.TrimRight(b.String(), " ")
	}
	return lines
}
