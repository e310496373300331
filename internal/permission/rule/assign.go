package rule

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Variables that make a shell, the dynamic loader or git run something else than
// the command line says. IFS is not among them: it splits only expanded words, and such
// words are unknown anyhow.
var (
	ruling        = strings.Fields("PATH ENV CDPATH SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND SHELL")
	rulingStarts  = []string{"LD_", "DYLD_", "BASH", "GIT_"}
	rulingEnds    = []string{"EDITOR", "VISUAL", "PAGER"} // their value is a command line
	harmlessStart = []string{"GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_TRACE", "GIT_MERGE_AUTOEDIT"}
)

// rulesCommands reports whether an assignment of a variable may change which programs run.
func rulesCommands(name string, value shellWord) bool {
	starts := func(p string) bool { return strings.HasPrefix(name, p) }
	switch {
	case slices.ContainsFunc(rulingEnds, func(e string) bool { return strings.HasSuffix(name, e) }):
		return !value.known
	case slices.ContainsFunc(harmlessStart, starts):
		return false
	}
	return slices.Contains(ruling, name) || slices.ContainsFunc(rulingStarts, starts)
}

// findAssigned checks what a node of a command line assigns. No value may mention a
// denied command: a later export would pass it to a program.
func (s denySearch) findAssigned(n syntax.Node) Finding {
	switch n := n.(type) {
	case *syntax.CallExpr:
		return s.findInValues(n.Assigns)
	case *syntax.DeclClause:
		return s.findInValues(n.Args)
	case *syntax.WordIter:
		if rulesCommands(n.Name.Value, shellWord{}) {
			return Unclear
		}
	}
	return Clear
}

func (s denySearch) findInValues(list []*syntax.Assign) Finding {
	for _, a := range list {
		var name string
		if a.Name != nil {
			name = a.Name.Value
		}
		value := shellWord{known: true}
		if a.Value != nil {
			value = sayWord(a.Value)
		}
		switch {
		case a.Naked && a.Value == nil: // export PATH: it has its value
		case a.Naked && !value.known && !strings.HasPrefix(value.loose, "-"): // export "$X": of what, and to what, no word shows
			return Unclear
		case rulesCommands(name, value), s.mentionsDenied("", []shellWord{value}):
			return Unclear
		}
	}
	return Clear
}

// namedByArgs reports whether arguments name a variable that rules commands: those
// of builtins that assign, and NAME=value before the command of a starter.
func namedByArgs(name string, args []shellWord) bool {
	builtin := slices.Contains(assigners, name)
	return slices.ContainsFunc(args, func(w shellWord) bool {
		if builtin && !w.known {
			variable, _, set := strings.Cut(w.loose, "=")
			return !set || strings.Contains(variable, " ") || rulesCommands(variable, shellWord{})
		}
		variable, value, set := strings.Cut(w.text, "=")
		return (builtin || set) && rulesCommands(variable, shellWord{text: value, known: w.known})
	})
}

// isAssigning reports whether a builtin sets a variable that rules commands, or one
// that no argument shows.
func isAssigning(name string, args []shellWord) bool {
	switch name {
	case "printf":
		return len(args) > 0 && (!args[0].known && args[0].loose == "" || strings.HasPrefix(args[0].loose, "-v"))
	case "mapfile", "readarray":
		if slices.ContainsFunc(args, func(w shellWord) bool { return strings.HasPrefix(w.loose, "-") && strings.Contains(w.loose, "C") }) {
			return true
		}
	}
	return slices.Contains(assigners, name) && namedByArgs(name, args)
}
