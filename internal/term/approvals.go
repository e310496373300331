package term

import (
	"fmt"
	"strings"
)

// FormatApprovals says how many of the people who must approve a call have done so; "": one person decides.
func FormatApprovals(needed int, by string) string {
	switch {
	case needed < 2:
		return ""
	case by == "":
		return fmt.Sprintf("0 of %d approved", needed)
	}
	return fmt.Sprintf("1 of %d approved, by %s", needed, CleanLine(by))
}

// FormatRuleOrigin says where a rule was written. The rule of an answer names its question.
func FormatRuleOrigin(from string) string {
	if query, ok := strings.CutPrefix(from, "answer to "); ok {
		from = "--always run, in the answer to " + query
	}
	return CleanLine(from)
}
