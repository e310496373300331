package term

import (
	"regexp"
	"strings"
)

// markdownWidth is the most columns of a paragraph: longer lines are hard to read.
const markdownWidth = 100

var (
	headingLine = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	listLine    = regexp.MustCompile(`^(\s*)([-*+]|\d+[.)])\s+(.*)$`)
	quoteLine   = regexp.MustCompile(`^>\s?(.*)$`)
	ruleLine    = regexp.MustCompile(`^\s*([-*_])(\s*[-*_]){2,}\s*$`)
	tableLine   = regexp.MustCompile(`^\s*\|.*\|\s*$`)
	strongText  = regexp.MustCompile(`\*\*([^*\n]+)\*\*|__([^_\n]+)__`)
	codeText    = regexp.MustCompile("`([^`\n]+)`")
	linkText    = regexp.MustCompile(`\[([^\]\n]+)\]\(([^)\s]+)\)`)
)

// Markdown draws the Markdown that models write, for a terminal of width columns: headings, lists, quotes, code,
// strong text and links. It wraps words, and leaves code and tables as they are. The text must be clean (CleanText).
func (s Style) Markdown(text string, width int) []string {
	width = max(doingMin, min(width, markdownWidth))
	var lines, para []string
	flush := func() {
		if len(para) > 0 {
			lines = append(lines, s.wrapInline(strings.Join(para, " "), "", "", width)...)
			para = nil
		}
	}
	fence := ""
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
				continue
			}
			lines = append(lines, "    "+s.Cyan(line))
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			flush()
			fence = trimmed[:3]
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
			flush()
			lines = append(lines, line)
		case listLine.MatchString(line):
			flush()
			m := listLine.FindStringSubmatch(line)
			mark := m[2]
			if len(mark) == 1 {
				mark = "•"
			}
			first := m[1] + mark + " "
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

// wrapInline wraps a paragraph and then styles it: a styled span that is broken keeps its marks off the screen, and
// its style on each line.
func (s Style) wrapInline(text, first, next string, width int) []string {
	text = linkText.ReplaceAllStringFunc(text, func(link string) string {
		m := linkText.FindStringSubmatch(link)
		if m[1] == m[2] {
			return m[1]
		}
		return m[1] + " (" + m[2] + ")"
	})
	spans := strongText.FindAllStringSubmatch(text, -1)
	codes := codeText.FindAllStringSubmatch(text, -1)
	plain := codeText.ReplaceAllString(strongText.ReplaceAllString(text, "$1$2"), "$1")
	var lines []string
	for i, line := range Wrap(plain, max(doingMin, width-Width(first))) {
		for _, m := range codes {
			line = strings.ReplaceAll(line, m[1], s.Cyan(m[1]))
		}
		for _, m := range spans {
			if strong := m[1] + m[2]; !strings.Contains(strong, "`") {
				line = strings.ReplaceAll(line, strong, s.Bold(strong))
			}
		}
		if i == 0 {
			lines = append(lines, first+line)
			continue
		}
		lines = append(lines, next+line)
	}
	return lines
}
