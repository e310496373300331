package rule

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Finding is the result of checking a command line against the rules that deny commands.
type Finding int

// Findings, the strictest last.
const (
	Clear   Finding = iota // no command of the line matches a rule
	Unclear                // the command is known only when the line runs
	Denied                 // a command of the line matches a rule
)

// Bounds of a search.
const (
	scriptsDeep = 4   // command lines within arguments of command lines
	scriptsMax  = 500 // command lines that are parsed for one
	wordsMax    = 256 // of a command that starts another
)

// starters run the command that their arguments name.
var starters = strings.Fields(`arch bwrap builtin busybox capsh chronic chroot chrt command dbus-run-session doas eatmydata entr env exec fakeroot fd find firejail
	flock gdb ionice ld.so linux32 linux64 ltrace nice nohup nsenter numactl parallel pkexec prlimit proot rlwrap run0 runuser screen script setarch setpriv setsid
	sg ssh sshpass start-stop-daemon stdbuf strace su sudo systemd-inhibit systemd-run taskset time timeout tmux torsocks toybox unbuffer unshare valgrind watch
	xargs xvfb-run`)

// loaders begin the names of programs that run another one.
var loaders = []string{"ld-linux", "ld-musl", "ld64"}

// shells run a command line that is an argument, a file or their input.
var shells = strings.Fields("ash bash dash fish ksh loksh lksh mksh oksh osh posh pwsh rbash rksh rzsh sash sh tcsh csh xonsh yash zsh")

// lines run their arguments as a command line.
var lines = strings.Fields("eval parallel script sg ssh su trap watch")

// opaque change what later words mean, or run what no argument shows.
var opaque = strings.Fields(". alias bind compgen complete enable fc hash source")

// Find compares a command line with rules that deny commands, wherever in the line a
// command occurs: in lists, pipes, substitutions, functions and here-documents,
// behind env, sudo, xargs and the like, in the argument of sh -c. It compares a program
// by the last element of its path. A rule of one word, or one that ends
// with ":*", matches any arguments; the other words of a rule need not be
// adjacent, so options between them do not matter.
//
// Programs that are not known to take plain arguments (plainPrograms) may run what
// they mention: if an argument of such a program, or a variable that it gets,
// mentions a denied command, the line is unclear. So is a line that changes the meaning of
// commands (PATH, LD_PRELOAD), and one in which bash evaluates quoted text.
//
// Find protects against mistakes, not attacks. Names cannot show what a program does: an
// interpreter, a script, a Makefile or a text that is put together runs what it
// likes, within the sandbox.
func Find(rules []string, command string) Finding {
	left := scriptsMax
	s := denySearch{left: &left}
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
	return s.searchScript(command, 0)
}

type denySearch struct {
	rules []commandRule
	left  *int // command lines that may still be parsed
	facts lineFacts
}

// shellWord is a word; known is false if the word is known only when the command runs. loose
// holds the literal parts of the word even then.
type shellWord struct {
	text, loose string
	known       bool
}

func sayWord(w *syntax.Word) shellWord {
	text, known := wordText(w, true)
	if lit := w.Lit(); lit == "[" || lit == "[[" {
		text, known = lit, true // no pattern that fits anything else
	}
	return shellWord{text: text, loose: looseText(w), known: known}
}

func (s denySearch) searchScript(command string, depth int) Finding {
	if *s.left--; depth > scriptsDeep || *s.left < 0 {
		return Unclear
	}
	found := Clear
	for _, as := range variants {
		file, ok := parseCommand(command, as)
		if !ok {
			found = max(found, Unclear)
			continue
		}
		if s.facts = factsOf(file); s.facts.hidden && s.facts.evaluates {
			found = max(found, Unclear)
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			if n == nil {
				return true
			}
			found = max(found, s.findAssigned(n))
			if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
				words := make([]shellWord, len(c.Args))
				for i, w := range c.Args {
					words[i] = sayWord(w)
				}
				found = max(found, s.searchCommand(words, depth))
			}
			return found < Denied
		})
	}
	return found
}

// mentionsDenied reports whether the arguments of a program mention a denied command.
func (s denySearch) mentionsDenied(name string, args []shellWord) bool {
	return slices.ContainsFunc(s.rules, func(r commandRule) bool { return r.mentionsCommand(name, args) })
}

// searchCommand looks at one simple command, and at those that it starts.
func (s denySearch) searchCommand(words []shellWord, depth int) Finding {
	found := s.matchRules(words, depth)
	name := path.Base(words[0].text)
	if (s.facts.functions || !isPlain(words)) && s.mentionsDenied(name, words[1:]) {
		found = max(found, Unclear)
	}
	if !words[0].known || !isStarter(name) {
		return found
	}
	if namedByArgs(name, words[1:]) {
		found = max(found, Unclear)
	}
	if len(words) > wordsMax {
		return max(found, Unclear)
	}
	for i := 1; i < len(words); i++ {
		if words[i].text == "." && words[0].text != "command" && words[0].text != "builtin" {
			continue // a directory: only a shell runs "."
		}
		found = max(found, s.matchRules(words[i:], depth))
	}
	return found
}

func isStarter(name string) bool {
	return slices.Contains(starters, name) || slices.ContainsFunc(loaders, func(l string) bool { return strings.HasPrefix(name, l) })
}

// isShell reports whether a program is a shell, of whatever version: bash5, zsh-5.9.
func isShell(name string) bool {
	return slices.Contains(shells, strings.TrimRight(name, "0123456789.-"))
}

// matchRules compares the rules with the command that begins with these words.
func (s denySearch) matchRules(words []shellWord, depth int) Finding {
	if !words[0].known {
		return Unclear
	}
	name, found := path.Base(words[0].text), Clear
	for _, r := range s.rules {
		found = max(found, r.fitsCommand(name, words[1:]))
	}
	switch {
	case slices.Contains(opaque, name), isAssigning(name, words[1:]):
		return max(found, Unclear)
	case isShell(name):
		return max(found, s.searchShellArg(words[1:], depth))
	case slices.Contains(lines, name):
		return max(found, s.searchLines(words[1:], depth))
	case name == "env" && slices.ContainsFunc(words, func(w shellWord) bool {
		return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "S") || strings.HasPrefix(w.text, "--split")
	}):
		return max(found, s.searchLines(words[1:], depth))
	}
	return found
}

// fitsCommand compares one rule with a command.
func (r commandRule) fitsCommand(name string, args []shellWord) Finding {
	if len(r.words) > 1 && name == r.words[0]+"-"+r.words[1] { // git-push
		return commandRule{r.words[1:], r.prefix}.fitsCommand(r.words[1], args)
	}
	if r.words[0] != name {
		return Clear
	}
	rest, unknown := r.words[1:], false
	if exact := !r.prefix && len(rest) > 0; exact && len(args) != len(rest) {
		if !slices.ContainsFunc(args, func(w shellWord) bool { return !w.known }) {
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

// searchShellArg looks at the command line that a shell gets as an argument. One that it
// reads from a file or its input is not seen.
func (s denySearch) searchShellArg(args []shellWord, depth int) Finding {
	for i, w := range args {
		if w.known && strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "c") {
			return s.searchLines(args[i+1:], depth)
		}
	}
	return Unclear
}

// searchLines checks arguments that are run as command lines: each alone, and each together
// with all that follow it.
func (s denySearch) searchLines(args []shellWord, depth int) Finding {
	if len(args) > wordsMax/8 {
		return Unclear
	}
	found, rest := Clear, ""
	for _, w := range slices.Backward(args) {
		if !w.known {
			return max(found, Unclear)
		}
		rest = strings.TrimSpace(w.text + " " + rest)
		found = max(found, s.searchScript(w.text, depth+1), s.searchScript(rest, depth+1))
		if found == Denied {
			break
		}
	}
	return found
}
