package shell

import (
	"slices"
	"strings"
)

// AnyCommand is the rule that fits every command line.
const AnyCommand = "*"

// commandRule is one rule as agent files write it in parentheses behind the tool:
// "git log:*" is git log with any arguments, "make test" just that.
type commandRule struct {
	words  []string
	prefix bool
}

func parseRule(text string) commandRule {
	text = strings.TrimSpace(text)
	words, prefix := strings.CutSuffix(text, ":*")
	if !prefix {
		words, prefix = strings.CutSuffix(text, " *")
	}
	return commandRule{strings.Fields(words), prefix}
}

// Allowed reports whether a command line may run without approval: it matches "*", or
// it is a list of simple commands of literal words, and each command matches a rule.
// A command that chains, redirects, substitutes, expands or assigns matches no rule.
// A rule covers the first words; the options after them are not checked.
func Allowed(rules []string, command string) bool {
	if slices.ContainsFunc(rules, func(r string) bool { return strings.TrimSpace(r) == AnyCommand }) {
		return true
	}
	for _, as := range variants {
		list, ok := plainCommands(command, as)
		if !ok || slices.ContainsFunc(list, func(words []string) bool { return !allowedWords(rules, words) }) {
			return false
		}
	}
	return true
}

func allowedWords(rules, words []string) bool {
	return slices.ContainsFunc(rules, func(text string) bool {
		r := parseRule(text)
		n := len(r.words)
		return n > 0 && len(words) >= n && (r.prefix || len(words) == n) && slices.Equal(r.words, words[:n])
	})
}
