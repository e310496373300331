package term

import "strings"

// Wrap breaks clean text into lines of at most width columns, at spaces where
// there are some; newlines of the text stay. It has no colours.
func Wrap(text string, width int) []string {
	width = max(2, width) // no character is wider
	var lines []string
	for para := range strings.SplitSeq(strings.ReplaceAll(text, "\t", "    "), "\n") {
		line := ""
		for word := range strings.SplitSeq(strings.TrimRight(para, " "), " ") {
			left := Width(word)
			if line != "" && Width(line)+1+left > width {
				lines, line = append(lines, line), ""
			} else if line != "" {
				line += " "
			}
			for left > width {
				head := plainColumns.TruncateString(word, width, "")
				lines, word, left = append(lines, head), word[len(head):], left-Width(head)
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

// CutLines breaks clean text into lines of at most width columns and keeps all its spaces, as a difference needs them.
func CutLines(text string, width int) (lines []string) {
	width = max(2, width) // no character is wider
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\t", "    "), "\n") {
		for {
			head := plainColumns.TruncateString(line, width, "")
			lines = append(lines, head)
			if len(head) == len(line) || head == "" {
				break
			}
			line = line[len(head):]
		}
	}
	return lines
}

// FormatPairs draws names and values in two columns and wraps the values. It omits a value without lines.
func FormatPairs(s Style, pairs [][2]string, width int) []string {
	names := 0
	for _, p := range pairs {
		if p[1] != "" {
			names = max(names, Width(p[0]))
		}
	}
	var lines []string
	for _, p := range pairs {
		if p[1] == "" {
			continue
		}
		name := s.Dim(Pad(p[0], names)) + "  "
		for i, line := range Wrap(p[1], max(barMin, width-names-2)) {
			if i > 0 {
				name = strings.Repeat(" ", names+2)
			}
			lines = append(lines, strings.TrimRight(name+line, " "))
		}
	}
	return lines
}
