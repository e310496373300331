package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Finding is what is known of a command line and the rules that deny commands.
type Finding int

// Findings, the strictest last.
const (
	Clear   Finding = iota // no command of it fits a rule
	Unclear                // what it runs is decided when it runs
	Denied                 // a command of it fits a rule
)

// Bounds of a search.
const (
	scriptsDeep = 4   // command lines within arguments of command lines
	scriptsMax  = 500 // command lines that are parsed for one
	wordsMax    = 256 // of a command that starts another
)

// starters run the command that their arguments name.
var starters = strings.Fields(`arch bwrap builtin busybox chroot chrt command dbus-run-session doas env exec fakeroot fd find firejail flock gdb ionice
	linux32 linux64 ltrace nice nohup nsenter parallel pkexec prlimit proot rlwrap runuser script setarch setpriv setsid ssh sshpass stdbuf strace su
	sudo systemd-run taskset time timeout torsocks toybox unbuffer unshare valgrind watch xargs xvfb-run`)

// shells run a command line that is an argument, a file or their input.
var shells = strings.Fields("ash bash dash fish ksh ksh93 mksh rbash sh tcsh csh yash zsh")

// lines run their arguments as a command line.
var lines = strings.Fields("eval parallel script ssh su trap watch")

// opaque change what later words mean, or run what no argument shows.
var opaque = strings.Fields(". alias bind enable hash source")

// Find compares a command line with rules that deny commands, wherever in it a
// command stands: in lists, pipes, substitutions, functions and here-documents,
// behind env, sudo, xargs and the like, in the argument of sh -c. A program is
// compared by the last element of its path. A rule of one word, or one that ends
// with ":*", fits whatever the arguments are; the other words of a rule need not be
// next to each other, so options between them do not matter.
//
// Names cannot show what a program does: an interpreter, a script or a Makefile runs
// what it likes, within the sandbox.
func Find(rules []string, command string) Finding {
	left := scriptsMax
	s := search{left: &left}
	for _, text := range rules {
		if r := parseRule(text); strings.TrimSpace(text) == AnyCommand {
			return Denied
		} else if len(r.words) > 0 {
			r.words[0] = path.Base(r.words[0])
			s.rules = append(s.rules, r)
		}
	}
	if len(s.rules) == 0 {
		return Clear
	}
	return s.script(command, 0)
}

type search struct {
	rules []rule
	left  *int // command lines that may still be parsed
}

// said is a word; known is false if it is decided when the command runs.
type said struct {
	text  string
	known bool
}

func (s search) script(command string, depth int) Finding {
	if *s.left--; depth > scriptsDeep || *s.left < 0 {
		return Unclear
	}
	found := Clear
	for _, as := range variants {
		file, ok := parse(command, as)
		if !ok {
			found = max(found, Unclear)
			continue
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
				words := make([]said, len(c.Args))
				for i, w := range c.Args {
					words[i].text, words[i].known = wordText(w, true)
				}
				found = max(found, s.command(words, depth))
			}
			return found < Denied
		})
	}
	return found
}

// command looks at one simple command, and at those that it starts.
func (s search) command(words []said, depth int) Finding {
	found := s.at(words, depth)
	if !words[0].known || !slices.Contains(starters, path.Base(words[0].text)) {
		return found
	}
	if len(words) > wordsMax {
		return max(found, Unclear)
	}
	for i := 1; i < len(words); i++ {
		if words[i].text == "." && words[0].text != "command" && words[0].text != "builtin" {
			continue // a directory: only a shell runs "."
		}
		found = max(found, s.at(words[i:], depth))
	}
	return found
}

// at compares the rules with the command that begins with these words.
func (s search) at(words []said, depth int) Finding {
	if !words[0].known {
		return Unclear
	}
	name, found := path.Base(words[0].text), Clear
	for _, r := range s.rules {
		found = max(found, r.fits(name, words[1:]))
	}
	switch {
	case slices.Contains(opaque, name):
		return max(found, Unclear)
	case slices.Contains(shells, name):
		return max(found, s.shell(words[1:], depth))
	case slices.Contains(lines, name):
		return max(found, s.lines(words[1:], depth))
	case name == "env" && slices.ContainsFunc(words, func(w said) bool {
		return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "S") || strings.HasPrefix(w.text, "--split")
	}):
		return max(found, s.lines(words[1:], depth))
	}
	return found
}

// fits compares one rule with a command.
func (r rule) fits(name string, args []said) Finding {
	if r.words[0] != name {
		return Clear
	}
	rest, unknown := r.words[1:], false
	if exact := !r.prefix && len(rest) > 0; exact && len(args) != len(rest) {
		if !slices.ContainsFunc(args, func(w said) bool { return !w.known }) {
			return Clear
		}
		return Unclear // one word may become several, or none
	}
	for _, w := range args {
		switch {
		case len(rest) == 0:
		case !w.known:
			unknown = true
		case w.text == rest[0]:
			rest = rest[1:]
		}
	}
	switch {
	case len(rest) == 0:
		return Denied
	case unknown:
		return Unclear
	}
	return Clear
}

// shell looks at the command line that a shell gets as an argument. One that it
// reads from a file or its input is not seen.
func (s search) shell(args []said, depth int) Finding {
	for i, w := range args {
		if w.known && strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "c") {
			return s.lines(args[i+1:], depth)
		}
	}
	return Unclear
}

// lines looks at arguments that are run as command lines: each alone, and all that
// follow it together.
func (s search) lines(args []said, depth int) Finding {
	if len(args) > wordsMax/8 {
		return Unclear
	}
	found, rest := Clear, ""
	for _, w := range slices.Backward(args) {
		if !w.known {
			return max(found, Unclear)
		}
		rest = strings.TrimSpace(w.text + " " + rest)
		found = max(found, s.script(w.text, depth+1), s.script(rest, depth+1))
		if found == Denied {
			break
		}
	}
	return found
}
