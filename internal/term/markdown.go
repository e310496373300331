package term

import (
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// markdownWidth is the most columns of a paragraph: longer lines are hard to read.
const markdownWidth = 100

var (
	headingLine = lazyregexp.New(`^#{1,6}\s+(.*?)(?:\s+#+)?$`)
	listLine    = lazyregexp.New(`^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$`)
	fenceLine   = lazyregexp.New("^(`{3,}[^`]*|~{3,}.*)$")
	quoteLine   = lazyregexp.New(`^>\s?(.*)$`)
	ruleLine    = lazyregexp.New(`^\s*([-*_])(\s*[-*_]){2,}\s*$`)
	tableLine   = lazyregexp.New(`^\s*\|.*\|\s*$`)
)

// Markdown draws the Markdown that models write, for a terminal of width columns: headings, lists, quotes, code,
// tables, strong text and links. It wraps words, and leaves code as it is. The text must be clean (CleanText).
func (s Style) Markdown(text string, width int) []string {
	width = max(doingMin, min(width, markdownWidth))
	var lines, para, table []string
	flush := func() {
		if len(table) > 0 {
			lines = append(lines, s.drawTable(table, width)...)
			table = nil
		}
		if len(para) > 0 {
			lines = append(lines, s.wrapInline(strings.Join(para, " "), "", "", width)...)
			para = nil
		}
	}
	fence := ""
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		trimmed := strings.TrimSpace(line)
		if len(table) > 0 && !tableLine.MatchString(line) {
			flush()
		}
		switch {
		case fence != "":
			if len(trimmed) >= len(fence) && strings.Trim(trimmed, fence[:1]) == "" {
				fence = ""
				continue
			}
			lines = append(lines, "    "+s.Cyan(line))
		case fenceLine.MatchString(trimmed):
			flush()
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
		case trimmed == "":
			flush()
			if n := len(lines); n > 0 && lines[n-1] != "" {
				lines = append(lines, "")
			}
		case headingLine.MatchString(trimmed):
			flush()
			lines = append(lines, s.Bold(headingLine.FindStringSubmatch(trimmed)[1]))
		case ruleLine.MatchString(line):
			flush()
			lines = append(lines, s.Dim(strings.Repeat("─", min(width, barColumns))))
		case tableLine.MatchString(line):
			if len(para) > 0 {
				flush()
			}
			table = append(table, line)
		case listLine.MatchString(line):
			flush()
			m := listLine.FindStringSubmatch(line)
			mark := m[2]
			if len(mark) == 1 {
				mark = "•"
			}
			indent := strings.ReplaceAll(m[1], "\t", "    ")
			first := indent[:min(len(indent), width/2)] + mark + " " // each line of the item repeats it
			lines = append(lines, s.wrapInline(m[3], first, strings.Repeat(" ", Width(first)), width)...)
		case quoteLine.MatchString(trimmed):
			flush()
			lines = append(lines, s.wrapInline(quoteLine.FindStringSubmatch(trimmed)[1], "│ ", "│ ", width)...)
		case strings.HasPrefix(line, "    ") && len(para) == 0:
			lines = append(lines, s.Cyan(line))
		default:
			para = append(para, trimmed)
			if strings.HasSuffix(line, "  ") { // a hard break
				flush()
			}
		}
	}
	flush()
	return lines
}
