package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
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
// A rule covers the first words and any after them, except for known options that write or run something: see readers.
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
		return r.begins(words) && r.uncovered(words) == ""
	})
}

// begins reports whether a command begins with the words of the rule, and has others only if the rule is a prefix.
func (r commandRule) begins(words []string) bool {
	n := len(r.words)
	return n > 0 && len(words) >= n && (r.prefix || len(words) == n) && slices.Equal(r.words, words[:n])
}

// Uncovered returns the argument that keeps a command from a rule which it begins with: an option that writes or runs
// something. "" if there is none.
func Uncovered(rules []string, command string) string {
	list, _ := plainCommands(command, syntax.LangPOSIX)
	for _, words := range list {
		if allowedWords(rules, words) {
			continue
		}
		for _, text := range rules {
			if r := parseRule(text); r.begins(words) {
				return r.uncovered(words)
			}
		}
	}
	return ""
}

// ErrRule is the error of a rule that would never fit a command, or another one than it says.
var ErrRule = errors.New("not a rule for commands")

// Check reports why a rule is none: it has no words, a * elsewhere than at its end, or what no single command has.
func Check(text string) error {
	if strings.TrimSpace(text) == AnyCommand {
		return nil
	}
	r := parseRule(text)
	switch {
	case len(r.words) == 0:
		return fmt.Errorf("%w: it has no words; write the beginning of a command, such as git log:*", ErrRule)
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return fmt.Errorf("%w: it has a control character", ErrRule)
	case slices.ContainsFunc(r.words, func(w string) bool { return strings.Contains(w, "*") }):
		return fmt.Errorf("%w: a * may stand only at its end, as in git log:*", ErrRule)
	case isAssignment(r.words[0]):
		return fmt.Errorf("%w: it begins with the assignment %.40q, and rules are compared with commands without their assignments; write the command alone", ErrRule, r.words[0])
	}
	if i := slices.IndexFunc(r.words, isOperator); i >= 0 {
		return fmt.Errorf("%w: it has the operator %q, and each command of a line is compared by itself; write one rule for each command", ErrRule, r.words[i])
	}
	return nil
}

// isAssignment reports whether a word at the beginning of a command sets a variable.
func isAssignment(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && syntax.ValidName(strings.TrimSuffix(name, "+"))
}

// isOperator reports whether a word of a rule is, or ends with, what separates or redirects commands in a line.
func isOperator(word string) bool {
	return slices.Contains([]string{"&&", "||", "|", "|&", "&"}, word) || strings.HasSuffix(word, ";") ||
		strings.HasPrefix(strings.TrimLeft(word, "0123456789&"), ">") || strings.HasPrefix(strings.TrimLeft(word, "0123456789"), "<")
}

// Fit returns the rule that fits exactly this command line; "" if no rule does, because the line is
// more than one simple command of literal words.
func Fit(command string) string {
	var fits string
	for _, as := range variants {
		list, ok := plainCommands(command, as)
		if !ok || len(list) != 1 {
			return ""
		}
		text := strings.Join(list[0], " ")
		if fits = text; strings.Contains(text, "*") || Check(text) != nil || !Allowed([]string{text}, command) {
			return ""
		}
	}
	return fits
}
