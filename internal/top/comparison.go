package top

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/compare"
	"github.com/troupe-run/troupe/internal/term"
)

// Compared is the answer to FetchComparison: two runs, and the steps of the agent that has their first difference.
type Compared struct {
	compare.Comparison
	Steps []compare.Pair
}

const (
	sideRows       = 12 // lines of each side of a step that differs
	sideGap        = " │ "
	factColumns    = 10
	sideBytesMax   = 4 << 10
	resultLinesMax = 60 // of the difference of the answers
)

// comparisonText draws two runs side by side, with their first difference marked.
func comparisonText(m *Model) []string {
	c, s := m.compared, m.style
	if c.A.RunID == "" {
		return []string{s.Dim("no runs are compared")}
	}
	lines := []string{s.Bold("Compare two runs")}
	room := max(1, (m.width-factColumns-2-term.Width(sideGap))/2)
	for _, f := range []struct {
		name string
		of   func(compare.Run) string
	}{{"run", func(r compare.Run) string { return r.RunID }}, {"a fork of", func(r compare.Run) string { return r.Fork }}, {"ended", func(r compare.Run) string { return cmp.Or(term.FormatReason(spec.Reason(r.Reason)), "not yet") }},
		{"model", func(r compare.Run) string { return r.Model }}, {"agents", func(r compare.Run) string { return fmt.Sprint(r.Agents) }}, {"turns", func(r compare.Run) string { return fmt.Sprint(r.Turns) }},
		{"spent", func(r compare.Run) string {
			return term.FormatTokens(r.Tokens) + " tokens, " + term.FormatUSD(r.CostUSD, r.IsEstimate)
		}}} {
		a, b := f.of(c.A), f.of(c.B)
		if a == "" && b == "" {
			continue
		}
		row := term.Pad(cleanLine(a), room) + sideGap + term.Truncate(cleanLine(b), room)
		if a != b && f.name != "run" {
			row = s.Yellow(row)
		}
		lines = append(lines, s.Dim(term.Pad(f.name, factColumns))+" "+row)
	}
	if c.First == nil {
		lines = append(lines, "", s.Green("No difference: messages, replies, calls, results and answers are the same."))
	} else {
		lines = append(lines, "", s.Bold(cleanLine(fmt.Sprintf("First difference: %s, turn %d, %s %s", c.First.Agent, c.First.Turn, c.First.Kind, c.First.Call))))
	}
	first := slices.IndexFunc(c.Steps, func(p compare.Pair) bool { return p.Differs })
	for i, p := range c.Steps {
		lines = append(lines, stepLines(m, p, i == first)...)
	}
	if c.Text != "" {
		lines = append(lines, "", s.Bold("Answers"))
		result := term.CutLines(term.CleanText(clip.Prefix(c.Text, textBytesMax)), m.width)
		left := len(result) - resultLinesMax
		lines = append(lines, colorDiff(s, result[:min(len(result), resultLinesMax)])...)
		if left > 0 {
			lines = append(lines, s.Dim(fmt.Sprintf("… %d more lines: troupe compare", left)))
		}
	}
	return lines
}

// stepLines draws one step of both runs: in one line if they are the same, else side by side.
func stepLines(m *Model, p compare.Pair, isFirst bool) []string {
	s := m.style
	head := cleanLine(fmt.Sprintf("turn %d  %s  %s", p.Turn, p.Kind, p.Call))
	if !p.Differs {
		return []string{s.Dim(term.Truncate("= "+head+"  "+cleanLine(clip.Prefix(plainStep(p.A), sideBytesMax)), m.width))}
	}
	mark := s.Yellow("≠ " + head)
	if isFirst {
		mark = s.Red("▶ " + head + "  the first difference")
	}
	room := max(1, (m.width-2-term.Width(sideGap))/2)
	a, b := sideLines(p.A, room), sideLines(p.B, room)
	lines := []string{mark}
	for i := range max(len(a), len(b)) {
		var left, right string
		if i < len(a) {
			left = a[i]
		}
		if i < len(b) {
			right = b[i]
		}
		lines = append(lines, "  "+s.Red(term.Pad(left, room))+sideGap+s.Green(right))
	}
	return lines
}

// sideLines are the lines of one side of a step.
func sideLines(text string, room int) []string {
	if text == "" {
		return []string{"nothing"}
	}
	lines := term.CutLines(term.CleanText(clip.Prefix(plainStep(text), sideBytesMax)), room)
	if left := len(lines) - sideRows; left > 0 {
		lines = append(lines[:sideRows], term.Truncate(fmt.Sprintf("… %d more lines: troupe compare", left), room))
	}
	return lines
}

// plainStep returns what a step says: its text, if it has no more, or its fields.
func plainStep(text string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) != nil {
		return text
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		value := string(fields[k])
		var plain string
		if json.Unmarshal(fields[k], &plain) == nil {
			value = plain
		}
		if k == "text" && len(fields) == 1 {
			return value
		}
		parts = append(parts, k+": "+value)
	}
	return strings.Join(parts, "\n")
}
