package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

const (
	ageColumns   = 4
	stateColumns = 14
	spendColumns = 13
	costColumns  = 18
	modelColumns = 24
	// From how many columns on a row has the cost, the model and the whole id of a run: its title needs room first.
	costFrom  = 100
	modelFrom = 150
	idFrom    = 170
	// longNamesFrom is from how many columns on the views of a run have their whole names.
	longNamesFrom = 110
)

// runColumns returns how many columns the id of a run has.
func runColumns(width int) int {
	if width >= idFrom {
		return 26
	}
	return 10
}

func shortRun(id string, width int) string {
	return term.Truncate(cleanLine(id), runColumns(width))
}

// stateOf returns the state of a run in one word; of a finished one, why it stopped.
func stateOf(r client.RunInfo) string {
	switch {
	case r.State == client.RunFinished && r.Result != nil && r.Result.Reason != "":
		return term.FormatReason(r.Result.Reason)
	case r.Position > 0:
		return fmt.Sprintf("%s %d", r.State, r.Position)
	}
	return string(r.State)
}

// colorState colours the state of a run.
func colorState(s term.Style, state, text string) string {
	switch state {
	case "completed", "live", "finished":
		return s.Green(text)
	case "parked", "queued", "interrupted", "reading":
		return s.Yellow(text)
	}
	return s.Red(text)
}

// runRows returns the ids of the runs that the filter selects.
func runRows(m *Model) (keys []string) {
	for _, r := range m.runs {
		if m.matches(strings.Join([]string{r.RunID, r.Title, r.Model, stateOf(r), string(r.State)}, " ")) {
			keys = append(keys, r.RunID)
		}
	}
	return keys
}

func (m *Model) findRun(id string) (client.RunInfo, bool) {
	i := slices.IndexFunc(m.runs, func(r client.RunInfo) bool { return r.RunID == id })
	if i < 0 {
		return client.RunInfo{}, false
	}
	return m.runs[i], true
}

// spendOf returns what a run has spent; nil: it is not known yet.
func spendOf(r client.RunInfo) *event.Spend {
	if d := r.Result; d != nil {
		return &event.Spend{CostUSD: d.CostUSD, CostKnown: d.CostKnown, CostEstimated: d.CostEstimated, Budget: d.Budget}
	}
	return r.Spend
}

// spendTexts show the tokens against their limit, and the money.
func spendTexts(s *event.Spend) (used, money string) {
	if s == nil {
		return "", ""
	}
	if used = term.FormatTokens(s.Budget.Used); s.Budget.Limit > 0 {
		used += "/" + term.FormatTokens(s.Budget.Limit)
	}
	if s.CostKnown {
		money = term.FormatMoney(s.CostUSD, s.Budget.LimitUSD, 0, s.CostEstimated)
	}
	return used, money
}

func runHead(width int) string {
	head := "  " + term.Pad("RUN", runColumns(width)) + " " + term.Pad("STATE", stateColumns) + " " + term.Pad("AGE", ageColumns) + " " + term.Pad("TOKENS", spendColumns) + " "
	if width >= costFrom {
		head += term.Pad("COST", costColumns) + " "
	}
	if width >= modelFrom {
		head += term.Pad("MODEL", modelColumns) + " "
	}
	return head + "TITLE"
}

func runRow(m *Model, r client.RunInfo) string {
	state, _, _ := strings.Cut(stateOf(r), " (") // of a cancel what it ended has no room
	used, cost := spendTexts(spendOf(r))
	row := term.Pad(shortRun(r.RunID, m.width), runColumns(m.width)) + " " + colorState(m.style, state, term.Pad(cleanLine(state), stateColumns)) + " " +
		term.Pad(m.age(r.Started), ageColumns) + " " + term.Pad(used, spendColumns) + " "
	if m.width >= costFrom {
		row += term.Pad(cost, costColumns) + " "
	}
	if m.width >= modelFrom {
		row += term.Pad(term.ModelName(r.Model), modelColumns) + " "
	}
	return row + m.style.Bold(cleanLine(r.Title))
}

// age returns how long ago a stamp was.
func (m *Model) age(stamp string) string {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return "-"
	}
	return term.FormatAge(m.now.Sub(at))
}

// nodeRows returns the keys of the nodes.
func nodeRows(m *Model) (keys []string) {
	for _, n := range m.nodes {
		if m.matches(n.Name + " " + n.Host + " " + n.State) {
			keys = append(keys, n.ID)
		}
	}
	return keys
}

const (
	nodeColumns  = 14
	countColumns = 6 // of a number under a shorter word
)

// nodeCounts are the heads of the numbers of a node: the words of "troupe nodes list" and of the page.
var nodeCounts = []string{"SHARDS", "ACTORS", "BUSY", "PASSIVATED", "RUNS"}

func nodeHead() string {
	head := "  " + term.Pad("NODE", nodeColumns) + " " + term.Pad("STATE", ageColumns+4) + " "
	for _, name := range nodeCounts {
		head += fmt.Sprintf("%*s ", countColumns, name)
	}
	return head + term.Pad(" AGE", ageColumns+1) + " VERSION"
}

func nodeRow(m *Model, n client.NodeInfo) string {
	row := m.style.Bold(term.Pad(cleanLine(n.Name), nodeColumns)) + " " + term.Pad(cleanLine(n.State), ageColumns+4) + " "
	shards := fmt.Sprint(n.Held())
	if n.State == "alone" { // it owns all logs
		shards = "all"
	}
	for i, v := range []string{shards, countText(n.Live), countText(n.Busy), countText(n.Resting), fmt.Sprint(n.LiveRuns + n.QueuedRuns)} {
		row += fmt.Sprintf("%*s ", max(countColumns, len(nodeCounts[i])), v)
	}
	row += " " + term.Pad(m.age(n.Started), ageColumns) + " " + cleanLine(n.Version)
	if h := n.LogHealth; h != nil {
		row += m.style.Red("  logs: " + cleanLine(h.Why) + ": " + cleanLine(h.Remedy))
	}
	return row
}

// treeRows returns the ids of the agents that the filter selects, as the tree has them.
func treeRows(m *Model) []string {
	t := m.run.tree()
	ids := t.Agents()
	if m.filters[viewTree] == "" {
		return ids
	}
	var keys []string
	for _, id := range ids {
		if m.matches(id + " " + t.AgentName(id)) {
			keys = append(keys, id)
		}
	}
	return keys
}

// treeFoot and timelineFoot are the lines below the rows: the summary of the run, and the axis and the legend.
const (
	treeFoot     = 2
	timelineFoot = 3
)

func treeBody(m *Model, height int) []string {
	l, t := m.lists[viewTree], m.run.tree()
	var lines []string
	for i := l.top; i < min(l.top+height-treeFoot, len(l.keys)); i++ {
		lines = append(lines, m.marked(i == l.at, t.Row(m.style, l.keys[i], m.width-2, m.now)))
	}
	if len(l.keys) == 0 {
		lines = append(lines, m.style.Dim(m.emptyText("no agent has started yet")))
	}
	for len(lines) < height-treeFoot {
		lines = append(lines, "")
	}
	note := ""
	if t.IsFull {
		note = m.style.Yellow(fmt.Sprintf("the first %d agents; the rest is not shown", agentsMax))
	}
	return append(lines, note, t.Summary(m.style, m.now))
}

func timelineBody(m *Model, height int) []string {
	l := m.lists[viewTimeline]
	axis, bars, legend := m.run.timeline.Window(m.style, m.now, m.width-2, l.top, height-timelineFoot)
	lines := []string{"  " + axis}
	for i, bar := range bars {
		lines = append(lines, m.marked(l.top+i == l.at, bar))
	}
	for len(lines) < height-timelineFoot+1 {
		lines = append(lines, "")
	}
	return append(lines, legend[:min(len(legend), timelineFoot-1)]...)
}

// emptyText is what stands in place of rows: a filter may hide all.
func (m *Model) emptyText(text string) string {
	if m.filters[m.view] != "" {
		return "nothing matches " + cleanLine(m.filters[m.view])
	}
	return text
}

// verb returns the form of a verb for a number of subjects.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
