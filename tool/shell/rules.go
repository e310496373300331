package shell

import "strings"

// steers are the characters by which one command line does more than one thing,
// or other things than it shows. They count also within quotes: a rule that is
// too strict only asks a person.
const steers = ";&|<>$`()\n\r\x00"

// Allowed reports whether a command needs no person's leave, by rules as agent
// files write them in parentheses behind the tool: "git log:*" is git log with
// any arguments, "make test" just that, "*" any command. But for the last, a
// command that chains, redirects or substitutes fits no rule.
func Allowed(rules []string, command string) bool {
	for _, r := range rules {
		r = strings.TrimSpace(r)
		if r == "*" {
			return true
		}
		if r == "" || strings.ContainsAny(command, steers) {
			continue
		}
		words, prefix := strings.CutSuffix(r, ":*")
		if !prefix {
			words, prefix = strings.CutSuffix(r, " *")
		}
		rule, said := strings.Fields(words), strings.Fields(command)
		if len(rule) == 0 || len(said) < len(rule) || !prefix && len(said) != len(rule) {
			continue
		}
		fits := true
		for i, w := range rule {
			fits = fits && said[i] == w
		}
		if fits {
			return true
		}
	}
	return false
}
