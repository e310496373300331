package term

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/budget"
)

const (
	nameColumns  = 34 // most of the column of names, with its branches
	idColumns    = 14 // most of the column of ids
	idsFrom      = 72 // a narrower line has no room for ids
	turnColumns  = 9
	tokenColumns = 7
	barColumns   = 20
	doingMin     = 10
)

// treeRow is one line of the tree.
type treeRow struct {
	branch   string
	m        *member
	moreDone int // instead of a member: the number of members that are done
}

// drawing draws a tree as it is at a time.
type drawing struct {
	tree  *Tree
	style Style
	width int // of a line
	now   time.Time
}

func (t *Tree) drawing(s Style, width int, now time.Time) drawing { return drawing{t, s, width, now} }

// Lines draws the tree and a summary below it, at most height lines of at most
// width columns.
func (t *Tree) Lines(s Style, now time.Time, width, height int) []string {
	rows, left := t.arrange().rows, 0
	if len(rows) > height-1 { // the summary takes one line
		rows = t.listRows(true)
	}
	if len(rows) > height-1 {
		most := max(1, height-2) // the line that counts the omitted rows takes another
		left, rows = len(rows)-most, rows[:most]
	}
	room := columnsOf(rows).within(width)
	d := t.drawing(s, width, now)
	var lines []string
	for _, r := range rows {
		lines = append(lines, Truncate(d.row(r, room), width))
	}
	if left > 0 {
		lines = append(lines, s.Dim("… "+FormatCount(left, "more line")))
	}
	summary := t.Summary(s, now)
	if Width(summary) > width { // money and time matter more than the bar
		summary = d.summary(false)
	}
	lines = append(lines, Truncate(summary, width))
	return append(lines, d.writing(height-len(lines))...)
}

// treeColumns are the columns of the names, with their branches and marks, and of the ids; without ids: 0.
type treeColumns struct{ names, ids int }

// columnsOf returns the columns that rows need. The id of an agent that is alone is no news.
func columnsOf(rows []treeRow) (need treeColumns) {
	for _, r := range rows {
		if r.m != nil {
			need.names = max(need.names, Width(r.branch)+2+Width(CleanLine(r.m.displayName())))
			need.ids = max(need.ids, Width(CleanLine(r.m.shownID())))
		}
	}
	if len(rows) < 2 {
		need.ids = 0
	}
	return need
}

// within returns the columns that a line of width columns has for them.
func (c treeColumns) within(width int) treeColumns {
	c.names, c.ids = min(c.names, nameColumns, max(doingMin, width/2)), min(c.ids, idColumns)
	if width < idsFrom {
		c.ids = 0
	}
	return c
}

// drawID draws an id in its column, with two spaces before it: its end behind "…" if it is
// longer, as --agent takes it.
func (c treeColumns) drawID(s Style, id string) string {
	if c.ids == 0 {
		return ""
	}
	if id = CleanLine(id); Width(id) > c.ids {
		runes := []rune(id)
		id = "…" + string(runes[max(0, len(runes)-c.ids+1):])
	}
	return "  " + s.Dim(Pad(id, c.ids))
}

// writingShown is how many lines of the text that the first agent is writing stand below the tree.
const writingShown = 5

// writing returns the end of the text that the first agent is writing, wrapped, as far as there is room.
func (d drawing) writing(room int) (lines []string) {
	t := d.tree
	if len(t.order) == 0 || t.Result != nil {
		return nil
	}
	text := strings.TrimSpace(CleanText(strings.ToValidUTF8(t.agents[t.order[0]].writing, "")))
	if text == "" || room < 1 {
		return nil
	}
	wrapped := Wrap(text, min(d.width, markdownWidth))
	for _, line := range wrapped[max(0, len(wrapped)-min(writingShown, room)):] {
		lines = append(lines, d.style.Dim(line))
	}
	return lines
}

// listRows walks the tree from its roots. With fold, agents that are done and have
// nothing live below them are counted instead of shown.
func (t *Tree) listRows(fold bool) []treeRow {
	children := map[string][]*member{}
	for _, id := range t.order {
		m := t.agents[id]
		parent := m.parent
		if t.agents[parent] == nil || parent == id {
			parent = ""
		}
		children[parent] = append(children[parent], m)
	}
	var rows []treeRow
	var walk func(parent, indent string, depth int)
	walk = func(parent, indent string, depth int) {
		shown, done := children[parent], 0
		if fold && depth > 0 {
			shown = nil
			for _, m := range children[parent] {
				if isSubtreeDone(m, children) {
					done++
				} else {
					shown = append(shown, m)
				}
			}
		}
		for i, m := range shown {
			last := i == len(shown)-1 && done == 0
			branch, next := branchPrefixes(indent, last, depth)
			rows = append(rows, treeRow{branch: branch, m: m})
			walk(m.id, next, depth+1)
		}
		if done > 0 {
			branch, _ := branchPrefixes(indent, true, depth)
			rows = append(rows, treeRow{branch: branch, moreDone: done})
		}
	}
	walk("", "", 0)
	return rows
}

func branchPrefixes(indent string, last bool, depth int) (branch, next string) {
	switch {
	case depth == 0:
		return "", ""
	case last:
		return indent + "└─ ", indent + "   "
	}
	return indent + "├─ ", indent + "│  "
}

func isSubtreeDone(m *member, children map[string][]*member) bool {
	if m.reason == "" {
		return false
	}
	for _, c := range children[m.id] {
		if !isSubtreeDone(c, children) {
			return false
		}
	}
	return true
}

// shownID is the id that is shown next to the name of an agent; "": the name is the id.
func (m *member) shownID() string {
	if m.name == "" {
		return ""
	}
	return m.id
}

func (m *member) displayName() string {
	if m.name == "" {
		return m.id
	}
	return m.name
}

func (d drawing) row(r treeRow, columns treeColumns) string {
	s := d.style
	if r.m == nil {
		return s.Dim(fmt.Sprintf("%s✓ %d more done", r.branch, r.moreDone))
	}
	m := r.m
	mark, doing := m.markAndActivity(s, d.tree.clock.at(d.now))
	if d.tree.clock.interrupted && m.isLost() {
		mark, doing = s.Yellow("○"), s.Yellow("interrupted")+": "+doing
	}
	name := Pad(CleanLine(m.displayName()), max(1, columns.names-Width(r.branch)-2))
	id := columns.drawID(s, m.shownID())
	turn := ""
	if m.turn > 0 {
		turn = fmt.Sprintf("turn %d", m.turn)
	}
	room := max(doingMin, d.width-columns.names-Width(id)-turnColumns-tokenColumns-4)
	return s.Dim(r.branch) + mark + " " + s.Bold(name) + id + "  " + s.Dim(Pad(turn, turnColumns)) + Pad(doing, room) + " " +
		fmt.Sprintf("%*s", tokenColumns, formatTokens(m.tokens))
}

// markAndActivity returns an agent's mark and its current activity.
func (m *member) markAndActivity(s Style, now time.Time) (mark, doing string) {
	switch {
	case m.reason == "completed" && m.handedTo != "":
		return s.Green("✓"), "handed off to " + CleanLine(m.handedTo) + m.elapsedSuffix(now)
	case m.reason == "completed":
		return s.Green("✓"), "done" + m.elapsedSuffix(now)
	case m.reason != "":
		return s.Red("✗"), s.Red(m.endText()) + m.elapsedSuffix(now)
	case m.asks:
		return s.Yellow("?"), s.Yellow(CleanLine(m.activity))
	case len(m.calls) == 1:
		return s.Cyan("●"), CleanLine(m.calls[0].label)
	case m.countChildCalls() == len(m.calls) && len(m.calls) > 1:
		return s.Cyan("●"), fmt.Sprintf("waits for %d children", len(m.calls))
	case len(m.calls) > 1:
		return s.Cyan("●"), fmt.Sprintf("%s and %d more", CleanLine(m.calls[len(m.calls)-1].label), len(m.calls)-1)
	case m.frozen && !m.inModel:
		return s.Yellow("●"), s.Yellow("frozen")
	case m.activity == "queued":
		return s.Dim("·"), s.Dim("queued")
	}
	return s.Cyan("●"), CleanLine(m.activity)
}

// countChildCalls counts the calls in progress that are children.
func (m *member) countChildCalls() int {
	n := 0
	for _, c := range m.calls {
		if c.child {
			n++
		}
	}
	return n
}

func (m *member) elapsedSuffix(now time.Time) string {
	if m.began.IsZero() {
		return ""
	}
	end := m.ended
	if end.IsZero() {
		end = now
	}
	return "  " + FormatDuration(end.Sub(m.began))
}

// Summary is one line about the run as a whole: the budget and the counts.
func (t *Tree) Summary(s Style, now time.Time) string { return t.drawing(s, 0, now).summary(true) }

func (d drawing) summary(bar bool) string {
	t, s := d.tree, d.style
	end := t.Ended
	if end.IsZero() {
		end = t.clock.at(d.now)
	}
	var b strings.Builder
	b.WriteString("tokens ")
	if limit := t.Budget.Limit.Tokens; limit > 0 && bar {
		b.WriteString(budgetBar(s, t.Budget.Used, t.Budget.Reserved, limit) + " ")
	}
	b.WriteString(formatTokens(t.Budget.Used))
	if limit := t.Budget.Limit.Tokens; limit > 0 {
		b.WriteString("/" + formatTokens(limit))
	}
	if money := FormatMoney(t.Budget.UsedUSD, float64(t.Budget.Limit.Nano)/budget.NanoPerUSD, t.Budget.ReservedUSD, t.Budget.Estimated); money != "" {
		b.WriteString("   " + money)
	}
	fmt.Fprintf(&b, "   %s   %s", FormatCount(len(t.agents), "agent"), FormatCount(t.Calls, "tool call"))
	if t.handoffs > 0 {
		b.WriteString("   " + FormatCount(t.handoffs, "handoff"))
	}
	if !t.Began.IsZero() {
		fmt.Fprintf(&b, "   %s", formatClock(end.Sub(t.Began)))
	}
	notice := t.notice
	if t.clock.interrupted {
		notice = interruptedNotice
	}
	if notice != "" {
		b.WriteString("   " + s.Yellow(CleanLine(notice)))
	}
	return b.String()
}

// budgetBar shows the used and the reserved part of a limit.
func budgetBar(s Style, used, reserved, limit int64) string {
	cells := func(n float64) int { return int(min(barColumns, max(0, n)*barColumns/float64(limit))) }
	full := cells(float64(used))
	held := max(full, cells(float64(used)+float64(reserved))) - full
	return "[" + s.Green(strings.Repeat("█", full)) + s.Yellow(strings.Repeat("▒", held)) +
		s.Dim(strings.Repeat("░", barColumns-full-held)) + "]"
}

// FormatCount formats a number of things whose plural ends in s: 1 agent, 2 agents.
func FormatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
