package console

import (
	"testing"

	"github.com/troupe-run/troupe/internal/term"
)

// Callers put lines of their own between the rows of a table: each row is one line, at any width.
func TestATableHasOneLineForItsHeadAndEachRow(t *testing.T) {
	rows := [][]string{{"a", "a cell that is wider than the page of the narrow terminal"}, {"", ""}, {"c", "中文中文中文中文"}}
	for _, width := range []int{1, 8, 20, 80, Unbounded} {
		for n := range len(rows) + 1 {
			p := &Page{Width: width}
			p.AddTable(Left("NAME", "TEXT"), rows[:n])
			if len(p.Lines) != n+1 {
				t.Errorf("width %d, %d rows: %q", width, n, p.Lines)
			}
			for _, line := range p.Lines {
				if width != Unbounded && term.Width(line) > width {
					t.Errorf("width %d: %q", width, line)
				}
			}
		}
	}
}
