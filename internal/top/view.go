package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/term"
)

// isOfRun reports whether the view is about the open run.
func (m *Model) isOfRun() bool { return !slices.Contains(pageViews, m.view) }

// bodyHeight is how many lines the view itself has.
func (m *Model) bodyHeight() int {
	head := 1
	if m.isOfRun() {
		head = 3
	}
	return max(1, m.height-head-2)
}

// View draws the screen: as many lines as the terminal has, none of them wider.
func (m *Model) View() string {
	if m.width < widthMin || m.height < heightMin {
		return term.Truncate(fmt.Sprintf("the terminal is too small: %d×%d at least", widthMin, heightMin), m.width)
	}
	lines := []string{m.headLine()}
	if m.isOfRun() {
		lines = append(lines, m.runLine(), m.tabLine())
	}
	height := m.bodyHeight()
	body := m.body(height)
	switch {
	case m.help:
		body = helpText(m)
	case m.form != nil:
		body = m.form.body(m, height)
	}
	for len(body) < height {
		body = append(body, "")
	}
	lines = append(append(lines, body[:height]...), m.statusLine(), m.keyLine())
	for i, l := range lines {
		lines[i] = strings.TrimRight(term.Truncate(l, m.width), " ")
	}
	return strings.Join(lines, "\n")
}

// body draws the view.
func (m *Model) body(height int) []string {
	switch m.view {
	case viewRuns:
		return tableBody(m, height, runHead(m.width), "There are no runs yet: troupe run starts one.", func(key string) string {
			r, _ := m.findRun(key)
			return runRow(m, r)
		})
	case viewNodes:
		return tableBody(m, height, nodeHead(), "No node is known.", func(key string) string {
			for _, n := range m.nodes {
				if n.ID == key {
					return nodeRow(m, n)
				}
			}
			return ""
		})
	case viewInbox, viewQuestions:
		return questionBody(m, height)
	case viewLog:
		return tableBody(m, height, entryHead(m), "This log has no entries.", func(key string) string {
			e, _ := m.run.entries.find(key)
			return entryRow(m, e)
		})
	case viewTree:
		return treeBody(m, height)
	case viewTimeline:
		return timelineBody(m, height)
	}
	return slices.Clone(m.pages[m.view].visible(height))
}

// tableBody draws rows below a head.
func tableBody(m *Model, height int, head, empty string, row func(key string) string) []string {
	l := m.lists[m.view]
	lines := []string{m.style.Dim(head)}
	for i := l.top; i < min(l.top+height-1, len(l.keys)); i++ {
		lines = append(lines, m.marked(i == l.at, row(l.keys[i])))
	}
	switch {
	case len(l.keys) > 0:
	case m.view == viewLog && !m.run.entries.read || m.view != viewLog && !m.read[m.view]:
		lines = append(lines, m.style.Dim("  reading …"))
	default:
		lines = append(lines, m.style.Dim("  "+m.emptyText(empty)))
	}
	return lines
}

// marked puts the mark of the selected row before a row.
func (m *Model) marked(is bool, row string) string {
	if is {
		return m.style.Cyan("▸") + " " + row
	}
	return "  " + row
}

// headLine names the pages, and says whether the screen is up to date.
func (m *Model) headLine() string {
	parts := []string{m.style.Bold("troupe")}
	for _, v := range pageViews {
		name := pageKeys[v] + " " + string(v)
		if v == viewCompare && v != m.view {
			continue
		}
		name = strings.TrimSpace(name)
		if v == viewInbox && len(m.questions) > 0 {
			name += fmt.Sprintf(" %d", len(m.questions))
		}
		parts = append(parts, m.chosen(v == m.view, name))
	}
	left := strings.Join(parts, "  ")
	right := m.style.Green("●") + " live"
	if !m.lost.IsZero() {
		right = m.style.Yellow("behind " + term.FormatAge(m.now.Sub(m.lost)) + ": no node answers")
	}
	return left + strings.Repeat(" ", max(1, m.width-term.Width(left)-term.Width(right))) + right
}

// chosen shows which of several names is the one on the screen, also without colours.
func (m *Model) chosen(is bool, name string) string {
	if is {
		return m.style.Bold("[" + name + "]")
	}
	return m.style.Dim(name)
}

// runLine names the open run.
func (m *Model) runLine() string {
	state := m.run.state()
	title := m.run.tree().Goal
	if title == "" {
		title = m.run.info.Title
	}
	return m.style.Dim(cleanLine(m.run.id)) + " " + colorState(m.style, state, cleanLine(state)) + " " + m.style.Bold(cleanLine(title))
}

// shortNames are names of views that have no room on a narrow screen.
var shortNames = map[view]string{viewStop: "Why", viewTimeline: "Time", viewMessages: "Msgs", viewLog: "Log"}

// tabLine names the views of a run, each with its key.
func (m *Model) tabLine() string {
	var parts []string
	for i, v := range runViews {
		name := string(v)
		if short := shortNames[v]; short != "" && m.width < longNamesFrom {
			name = short
		}
		parts = append(parts, m.chosen(v == m.view || v == partViews[m.view], fmt.Sprintf("%d %s", i+1, name)))
	}
	return strings.Join(parts, " ")
}

// statusLine is the open prompt, what became of the last action, or where the view is.
func (m *Model) statusLine() string {
	switch {
	case m.prompt != nil:
		return m.prompt.draw(m.style, m.width)
	case m.form != nil && (m.form.problem != "" || m.notice == ""):
		return m.form.statusLine(m)
	case m.notice != "" && m.noticeIsError:
		return m.style.Red(cleanLine(m.notice))
	case m.notice != "":
		return m.style.Green(cleanLine(m.notice))
	}
	var parts []string
	if f := m.filters[m.view]; f != "" {
		parts = append(parts, "filter: "+cleanLine(f))
	}
	if l := m.lists[m.view]; isList(m.view) && len(l.keys) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d", l.at+1, len(l.keys)))
	} else if p := m.pages[m.view]; len(p.lines) > m.bodyHeight() {
		parts = append(parts, fmt.Sprintf("lines %d to %d of %d", p.top+1, min(p.top+m.bodyHeight(), len(p.lines)), len(p.lines)))
	}
	if m.view == viewTranscript && canFork(m) {
		parts = append(parts, fmt.Sprintf("turn %d", turnToFork(m)))
	}
	return m.style.Dim(strings.Join(parts, "   "))
}

// lastLine is the number of the last line of the view's text that is on the screen.
func (m *Model) lastLine() int {
	p := m.pages[m.view]
	return min(p.top+m.bodyHeight(), len(p.lines)) - 1
}

// keyNames are the keys that work now, with a word for each; without those that have no room, if isFull.
func (m *Model) keyNames(isFull bool) (parts [][2]string) {
	for _, b := range bindings(m.view) {
		if b.word != "" && (b.when == nil || b.when(m)) && !(isFull && b.isSpare) {
			parts = append(parts, [2]string{b.show, b.word})
		}
	}
	return parts
}

// keysWidth is the width of the narrowest line of keys.
func keysWidth(parts [][2]string) (width int) {
	for _, p := range parts {
		width += term.Width(p[0]) + 1 + term.Width(p[1]) + 1
	}
	return width - 1
}

// keyLine names the keys that work now.
func (m *Model) keyLine() string {
	var parts [][2]string
	switch {
	case m.prompt != nil && m.prompt.choices != nil:
		for _, c := range m.prompt.choices {
			parts = append(parts, [2]string{c.key, c.what})
		}
		parts = append(parts, [2]string{"n", "no"})
	case m.prompt != nil:
		parts = [][2]string{{"⏎", "send"}, {"esc", "leave"}, {"ctrl+u", "clear"}}
	case m.form != nil:
		parts = m.form.keys()
	case m.help:
		parts = [][2]string{{"esc", "close"}, {"q", "quit"}}
	default:
		parts = m.keyNames(false)
		if keysWidth(parts) > m.width {
			parts = m.keyNames(true)
		}
	}
	for _, gap := range []string{"   ", "  ", " "} {
		line := ""
		for i, p := range parts {
			if i > 0 {
				line += gap
			}
			line += m.style.Bold(p[0]) + " " + m.style.Dim(p[1])
		}
		if term.Width(line) <= m.width || gap == " " {
			return line
		}
	}
	return ""
}
