// Package failure states the failure conditions of a run in prompts, and finds the condition that an agent names when it
// declares a failure.
package failure

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
)

// conditionWord precedes the number of a condition in an answer that declares a failure.
const conditionWord = "condition"

// Prompt is the part of a prompt that states under which conditions the run has failed, and how an agent
// declares that; "" without conditions. tool names the tool that declares a failure; "": the agent has none.
func Prompt(conditions []string, tool string) string {
	if len(conditions) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("The run has failed if one of these conditions holds:")
	for i, c := range conditions {
		fmt.Fprintf(&b, "\n%d. %s", i+1, c)
	}
	b.WriteString("\nBefore you finish, check each of them. ")
	if tool != "" {
		fmt.Fprintf(&b, "If one holds, call %s with its number as condition. If you could not do the task for another reason, call it with the reason alone. "+
			"An answer that begins with %s counts as such a call.", tool, spec.FailedMark)
	} else {
		fmt.Fprintf(&b, "If one holds, begin your final answer with %s %s N: (N is its number) and say why. "+
			"If you could not do the task for another reason, begin it with %s and the reason.", spec.FailedMark, conditionWord, spec.FailedMark)
	}
	b.WriteString(" An answer that only reports an obstacle is such a failure.")
	return b.String()
}

// NamedCondition returns the number, from 1, of the condition that the reason of a declared failure names: by its
// number, or in its own words; 0: none.
func NamedCondition(why string, conditions []string) int {
	text := strings.TrimSpace(why)
	if n := len(conditionWord); len(text) > n && strings.EqualFold(text[:n], conditionWord) {
		digits := strings.TrimLeft(text[n:], " #")
		end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(digits)
		}
		if i, err := strconv.Atoi(digits[:end]); err == nil && i >= 1 && i <= len(conditions) {
			return i
		}
	}
	for i, c := range conditions {
		if strings.Contains(strings.ToLower(text), strings.ToLower(c)) {
			return i + 1
		}
	}
	return 0
}
