package permission

import (
	"path"
	"slices"
	"strings"
)

// PathRule is a rule about files whose pattern begins with a fixed path: what a node needs to know to find
// where links on that path lead.
type PathRule struct {
	Tool  string
	Fixed string // without *; "/…" is a path of the machine, any other lies in the directory of the run
	Rest  string // of the pattern
}

// SplitPathRule splits the text of a rule; ok is false if it is about something else, or about a name in any directory.
func SplitPathRule(text string) (p PathRule, ok bool) {
	r, err := Parse(text)
	if err != nil || !slices.Contains(WriteTools, r.tool) && !slices.Contains(ReadTools, r.tool) || !strings.Contains(strings.TrimSuffix(r.pattern, "/"), "/") {
		return p, false
	}
	machine, isMachine := strings.CutPrefix(r.pattern, "//")
	words := strings.Split(path.Clean(strings.TrimPrefix(strings.TrimPrefix(machine, "./"), "/")), "/")
	n := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, globLetters) })
	if n < 0 {
		n = len(words)
	}
	p = PathRule{Tool: r.tool, Fixed: path.Join(words[:n]...), Rest: path.Join(words[n:]...)}
	if isMachine {
		p.Fixed = "/" + p.Fixed
	}
	return p, p.Fixed != ""
}

// globLetters mean something else than themselves in a pattern.
const globLetters = `*?[]{}\`

// Text returns the rule with another path in place of its fixed part.
func (p PathRule) Text(fixed string) string {
	var quoted strings.Builder
	for _, c := range fixed {
		if strings.ContainsRune(globLetters, c) {
			quoted.WriteByte('\\')
		}
		quoted.WriteRune(c)
	}
	pattern := strings.TrimSuffix(quoted.String()+"/"+p.Rest, "/")
	if pattern = "/" + strings.TrimPrefix(pattern, "./"); pattern == "/" || pattern == "/." {
		pattern = "**"
	}
	return p.Tool + "(" + pattern + ")"
}
