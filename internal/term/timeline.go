package term

import (
	"fmt"
	"strings"
	"time"
)

const (
	tookColumns = 8  // of the time at the end of a line
	barMin      = 12 // of the bars
	vetoLines   = 40 // lines about vetoes, at most
	markEvery   = 16 // columns between the marks of the axis, at least
)

// spanStyle defines the look of one kind of span. Earlier kinds cover later ones.
type spanStyle struct {
	kind  SpanKind
	name  string // "" : any
	glyph string
	style func(Style) func(string) string
	what  string
}

// A call that asks a person is a wait for that person, so this comes before tools.
var spanStyles = []spanStyle{
	{VetoSpan, "", "!", func(s Style) func(string) string { return s.Red }, "vetoed"},
	{ModelSpan, "", "█", func(s Style) func(string) string { return s.Green }, "model"},
	{WaitingSpan, forPerson, "?", func(s Style) func(string) string { return s.Yellow }, "waits for a person"},
	{ToolSpan, "", "▓", func(s Style) func(string) string { return s.Cyan }, "tool"},
	{WaitingSpan, forRetry, "×", func(s Style) func(string) string { return s.Red }, "waits to try again"},
	{WaitingSpan, forThrottle, "~", func(s Style) func(string) string { return s.Yellow }, "waits for a throttle"},
	{WaitingSpan, forBudget, "·", func(s Style) func(string) string { return s.Yellow }, "waits for the budget"},
	{WaitingSpan, "", "░", func(s Style) func(string) string { return s.Dim }, "waits for children"},
	{TurnSpan, "", "─", func(s Style) func(string) string { return s.Dim }, "rest of a turn"},
}

func styleIndex(s Span) int {
	for i, p := range spanStyles {
		if p.kind == s.Kind && (p.name == "" || p.name == s.Name) {
			return i
		}
	}
	return len(spanStyles) - 1
}

// Lines draws a bar for each agent over the time of the run, an axis above the bars and a
// legend below: no line is wider than width.
func (t *Timeline) Lines(s Style, now time.Time, width int) []string {
	agents := len(t.tree.Agents())
	axis, bars, legend := t.Window(s, now, width, 0, agents)
	lines := append(append([]string{axis}, bars...), legend...)
	if t.tree.clock.interrupted {
		lines = append(lines, Truncate(s.Yellow(interruptedNotice), width))
	}
	for _, sp := range t.spans {
		if sp.Kind == VetoSpan && len(lines) < vetoLines+agents {
			lines = append(lines, Truncate(fmt.Sprintf("%s  %s  turn %d  vetoed by %s, policy version %d", FormatDuration(time.Duration(sp.StartMS)*time.Millisecond),
				CleanLine(sp.Agent), sp.Turn, CleanLine(sp.Name), sp.Policy), width))
		}
	}
	return lines
}

// Window draws the axis, the bars of at most count agents from the index from on, and the legend of these bars. The
// agents are those of Tree().Agents.
func (t *Timeline) Window(s Style, now time.Time, width, from, count int) (axis string, bars, legend []string) {
	if t.began.IsZero() {
		return Truncate("nothing has happened yet", width), nil, nil
	}
	order := t.tree.arrange()
	rows := order.rows[min(from, len(order.rows)):min(from+count, len(order.rows))]
	room := order.need.within(width)
	names := min(max(0, order.need.names-2), nameColumns, max(doingMin, width/3)) // a bar has no mark before its name
	head := names + Width(room.drawID(s, ""))
	columns := max(barMin, width-head-tookColumns-2)
	total := max(1, t.visibleEnd(now).Sub(t.began).Milliseconds())
	spans := map[string][]Span{}
	for _, r := range rows {
		spans[r.m.id] = nil
	}
	used := map[int]bool{}
	for _, sp := range t.spansWithin(now, spans) {
		spans[sp.Agent] = append(spans[sp.Agent], sp)
	}
	for _, r := range rows {
		list := spans[r.m.id]
		name := Pad(CleanLine(r.m.displayName()), max(1, names-Width(r.branch)))
		bars = append(bars, Truncate(s.Dim(r.branch)+s.Bold(name)+room.drawID(s, r.m.shownID())+" "+drawBar(s, list, columns, total, used)+" "+
			fmt.Sprintf("%*s", tookColumns, timeOf(r.m, list)), width))
	}
	return Truncate(Pad("", head)+" "+s.Dim(drawAxis(columns, total)), width), bars, drawLegend(s, used, width)
}

// drawBar makes one bar. Each column shows the kind that took most of its time.
func drawBar(s Style, list []Span, columns int, total int64, used map[int]bool) string {
	var b strings.Builder
	for c := range columns {
		from, to := int64(c)*total/int64(columns), int64(c+1)*total/int64(columns)
		best := dominantStyle(list, from, max(to, from+1))
		if best < 0 {
			b.WriteByte(' ')
			continue
		}
		used[best] = true
		b.WriteString(spanStyles[best].style(s)(spanStyles[best].glyph))
	}
	return b.String()
}

// dominantStyle returns the style of a stretch of time, -1 for none. The rest of a turn shows only
// if there is nothing else.
func dominantStyle(list []Span, from, to int64) int {
	spent := make([]int64, len(spanStyles))
	seen := false
	for _, sp := range list {
		// A span without duration is visible, too.
		if sp.Kind == VetoSpan && sp.StartMS >= from && sp.StartMS < to {
			return styleIndex(sp)
		}
		if n := min(sp.EndMS, to) - max(sp.StartMS, from); n > 0 || n == 0 && sp.StartMS == sp.EndMS && sp.StartMS < to {
			spent[styleIndex(sp)] += max(n, 1)
			seen = true
		}
	}
	if !seen {
		return -1
	}
	best := len(spanStyles) - 1
	for i := range spanStyles[:len(spanStyles)-1] {
		if spent[i] > 0 && (best == len(spanStyles)-1 || spent[i] > spent[best]) {
			best = i
		}
	}
	return best
}

// timeOf returns how long an agent took, as the tree says it once the agent has ended.
func timeOf(m *member, list []Span) string {
	if m.began.IsZero() || m.ended.IsZero() {
		return activeTime(list)
	}
	return FormatDuration(m.ended.Sub(m.began))
}

// activeTime returns the time from the first span of an agent to the end of its last.
func activeTime(list []Span) string {
	if len(list) == 0 {
		return "-"
	}
	first, last := list[0].StartMS, int64(0)
	for _, sp := range list {
		last = max(last, sp.EndMS)
	}
	return FormatDuration(time.Duration(last-first) * time.Millisecond)
}

// drawAxis returns a line of times, each above its column.
func drawAxis(columns int, total int64) string {
	line := []rune(strings.Repeat(" ", columns))
	marks := max(1, columns/markEvery)
	free := 0
	for i := range marks + 1 {
		at := i * columns / marks
		text := []rune(FormatDuration(time.Duration(int64(at)*total/int64(columns)) * time.Millisecond))
		if i == 0 {
			text = []rune("0")
		}
		if i == marks { // the end of the line is the end of the run
			at = columns - len(text)
		}
		if at >= free && at+len(text) <= columns {
			copy(line[at:], text)
			free = at + len(text) + 1
		}
	}
	return strings.TrimRight(string(line), " ")
}

// drawLegend explains the signs in use, in as many lines as needed.
func drawLegend(s Style, used map[int]bool, width int) []string {
	var lines []string
	line := ""
	for i, p := range spanStyles {
		if !used[i] {
			continue
		}
		part := p.style(s)(p.glyph) + " " + p.what
		switch {
		case line == "":
			line = part
		case Width(line)+3+Width(part) > width:
			lines, line = append(lines, line), part
		default:
			line += "   " + part
		}
	}
	lines = append(lines, line)
	for i := range lines {
		lines[i] = Truncate(lines[i], width)
	}
	return lines
}
