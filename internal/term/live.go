package term

import (
	"fmt"
	"io"
	"strings"
)

// LiveRegion is a region at the bottom of a terminal that is redrawn in place. Only one goroutine
// may use it.
type LiveRegion struct {
	Out io.Writer
	// Size of the terminal, asked at each drawing.
	Size func() (width, height int)

	widths []int // of the lines in the region
}

// Draw replaces the contents of the region. A frame is one write, so that it does not
// flicker; lines that do not fit are cut.
func (l *LiveRegion) Draw(lines []string) error {
	width, height := l.Size()
	if most := max(1, height-1); len(lines) > most {
		left := len(lines) - most + 1
		lines = append([]string{fmt.Sprintf("… %d lines above", left)}, lines[left:]...)
	}
	var b strings.Builder
	l.moveHome(&b, width)
	l.widths = l.widths[:0]
	for _, line := range lines {
		line = Truncate(line, width-1)
		l.widths = append(l.widths, Width(line))
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(l.Out, b.String())
	return err
}

// WriteAbove writes lines above the region, where they stay.
func (l *LiveRegion) WriteAbove(lines ...string) error {
	width, _ := l.Size()
	var b strings.Builder
	l.moveHome(&b, width)
	l.widths = l.widths[:0]
	b.WriteString("\x1b[J")
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(l.Out, b.String())
	return err
}

// KeepLines leaves the drawn lines on the screen.
func (l *LiveRegion) KeepLines() { l.widths = nil }

// moveHome moves to the first line of the region. A terminal that became narrower has wrapped
// the lines in the region.
func (l *LiveRegion) moveHome(b *strings.Builder, width int) {
	rows := 0
	for _, w := range l.widths {
		rows += 1 + max(0, w-1)/max(1, width)
	}
	if rows > 0 {
		fmt.Fprintf(b, "\x1b[%dA", rows)
	}
	b.WriteString("\r")
}
