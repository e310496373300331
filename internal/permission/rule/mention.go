package rule

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// plainPrograms never run their arguments, whatever those are. Every other program
// may: then an argument that mentions a denied command makes the line unclear.
var plainPrograms = strings.Fields(`: [ basename cat cd cmp comm cut date df diff dirname du echo egrep exit expr false fgrep file grep head hexdump id jq
	ls md5sum mkdir nl od paste printf ps pwd readlink realpath return rg rmdir seq sha256sum sleep stat strings tail test touch tr tree true type uname uniq
	wc which whoami xxd yes`)

// plainPlaces are where programs of these names are what they are known as.
var plainPlaces = []string{".", "/bin", "/usr/bin", "/usr/local/bin"}

// isPlain reports whether a program is known to run none of these arguments.
func isPlain(words []shellWord) bool {
	name := words[0].text
	runs := func(w shellWord) bool { // only rg has such options
		return !w.known || strings.HasPrefix(w.text, "--pre") || strings.HasPrefix(w.text, "--hostname-bin")
	}
	return slices.Contains(plainPrograms, path.Base(name)) && slices.Contains(plainPlaces, path.Dir(name)) && !strings.HasPrefix(name, "./") &&
		(path.Base(name) != "rg" || !slices.ContainsFunc(words[1:], runs))
}

// mentionsCommand reports whether arguments mention the command of a rule: its words, in
// this order, wherever in a text. For the program that the rule is about, only
// settings count (git -c alias.x=push): a message may speak of anything.
func (r commandRule) mentionsCommand(name string, args []shellWord) bool {
	var text strings.Builder
	for _, w := range args {
		if setting, _, _ := strings.Cut(w.loose, " "); name != r.words[0] || strings.Contains(setting, "=") {
			text.WriteString(w.loose + " ")
		}
	}
	rest := r.words
	if name == r.words[0] {
		rest = rest[1:]
	}
	return len(rest) > 0 && hasWords(text.String(), rest)
}

func hasWords(text string, words []string) bool {
	for _, w := range words {
		i := indexWord(text, w)
		if i < 0 {
			return false
		}
		text = text[i+len(w):]
	}
	return true
}

// optionBytes is how far back an option, or a break, is looked for.
const optionBytes = 8

// indexWord returns the index of a word in a text, alone or behind a one-letter option.
func indexWord(text, word string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return -1
		}
		i += from
		before := text[max(0, i-optionBytes):i]
		if at := strings.LastIndexFunc(before, isBreak); at >= 0 {
			_, width := utf8.DecodeRuneInString(before[at:])
			before = before[at+width:]
		}
		option := len(before) == 2 && before[0] == '-' && before[1] != '-'
		if rest := text[i+len(word):]; (before == "" || option) && (rest == "" || strings.IndexFunc(rest, isBreak) == 0) {
			return i
		}
		from = i + 1
	}
}

// isBreak reports whether a rune ends the name of a program.
func isBreak(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.+", r)
}

// looseText are the literal parts of a word, also of one that is decided when the
// command runs. Expansions in it count as breaks.
func looseText(w *syntax.Word) string {
	var b strings.Builder
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(n.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(n.Value)
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst:
			b.WriteString(" ")
		}
		return true
	})
	return b.String()
}
