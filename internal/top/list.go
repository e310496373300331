package top

import (
	"slices"
	"time"
)

// list is a selection among rows with keys. It stays at its row when others come and go.
type list struct {
	keys []string
	at   int
	top  int       // the first row that is drawn
	set  time.Time // since when the selected row is selected, if no key chose it
}

// setRows replaces the rows. If the selected row is gone, the one in its place is selected.
func (l *list) setRows(keys []string, now time.Time) {
	old := l.selected()
	l.keys = keys
	if l.at < len(keys) && keys[l.at] == old {
		return
	}
	if i := slices.Index(keys, old); old != "" && i >= 0 {
		l.at = i
		return
	}
	l.at = max(0, min(l.at, len(keys)-1))
	l.set = now
}

// selected returns the key of the selected row; "" if there is none.
func (l *list) selected() string {
	if l.at >= len(l.keys) {
		return ""
	}
	return l.keys[l.at]
}

// move selects a row by a key of the person.
func (l *list) move(rows int) {
	l.at = max(0, min(l.at+rows, len(l.keys)-1))
	l.set = time.Time{}
}

// show moves the first drawn row so that the selected one is among height rows.
func (l *list) show(height int) {
	height = max(1, height)
	l.top = max(0, min(l.top, l.at, len(l.keys)-height))
	l.top = max(l.top, l.at-height+1)
}

// page is text that is scrolled.
type page struct {
	lines []string
	top   int
	end   bool // it stays at its end when lines are added
}

// scroll moves by lines within a window of height lines.
func (p *page) scroll(lines, height int) {
	last := max(0, len(p.lines)-height)
	p.top = max(0, min(p.top+lines, last))
	p.end = p.end && lines >= 0 || lines > 0 && p.top == last
}

// show keeps the window within the text.
func (p *page) show(height int) {
	last := max(0, len(p.lines)-height)
	if p.end {
		p.top = last
	}
	p.top = min(p.top, last)
}

// visible returns the lines in a window of height lines.
func (p *page) visible(height int) []string {
	return p.lines[min(p.top, len(p.lines)):min(p.top+max(0, height), len(p.lines))]
}
