package term

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/budget"
)

// FormatMoney formats what a run has spent, its limit in dollars and what is reserved: $0.02 of $1.00 (0.04 held).
// "" means that there is neither a limit nor a cost.
func FormatMoney(used, limit, held float64, estimated bool) string {
	if used == 0 && limit == 0 {
		return ""
	}
	text := FormatUSD(used, estimated)
	if limit > 0 {
		text += " of " + FormatUSD(limit, false)
	}
	if held > 0 {
		text += " (" + strings.TrimPrefix(FormatUSD(held, false), "$") + " held)"
	}
	return text
}

// describeShortage says which limit does not cover an attempt, and by how much.
func describeShortage(s event.BudgetShort) string {
	figure := formatTokens
	unit := " tokens"
	switch s.Of {
	case event.ShortUSD:
		figure, unit = func(n int64) string { return FormatUSD(float64(n)/budget.NanoPerUSD, false) }, ""
	case event.ShortCalls:
		unit = " tool calls"
	}
	whose := "the " + CleanLine(s.Whose) + "'s"
	if s.Subtree != "" {
		whose = "the subtree " + CleanLine(string(s.Subtree)) + "'s"
	}
	text := fmt.Sprintf("%s limit of %s%s: %s used, %s free", whose, figure(s.Limit), unit, figure(s.Used), figure(s.Free))
	if s.Carved > 0 {
		text += ", " + figure(s.Carved) + " held as shares"
	}
	text += ", the next call needs " + figure(s.Need)
	if lacks := s.Need - s.Free; lacks > 0 {
		text += ", " + figure(lacks) + " too much"
	}
	return text
}

// FormatSubtree shows the limit of an agent and those below it, as `2.0k of 10k tokens spent or kept, frozen`.
func FormatSubtree(t event.SubtreeBudget) string {
	var parts []string
	add := func(limit, used int64, unit string, figure func(int64) string) {
		if limit > 0 {
			parts = append(parts, figure(used)+" of "+figure(limit)+unit+" spent or kept")
		}
	}
	add(t.Limit.Tokens, t.Used.Tokens, " tokens", formatTokens)
	add(t.Limit.Nano, t.Used.Nano, "", func(n int64) string { return FormatUSD(float64(n)/budget.NanoPerUSD, false) })
	add(t.Limit.Calls, t.Used.Calls, " tool calls", formatTokens)
	if len(parts) == 0 {
		parts = append(parts, "no limit")
	}
	if t.Frozen {
		parts = append(parts, "frozen")
	}
	return strings.Join(parts, ", ")
}
