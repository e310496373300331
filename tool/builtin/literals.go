package builtin

import (
	"regexp/syntax"
	"strings"

	"github.com/troupe-run/troupe/internal/multimatch"
)

// Bounds of the analysis of a pattern: past them it is simply not done.
const (
	literalsMax    = 300 // words
	exactMax       = 24  // words that one part may be expanded to
	classMax       = 10  // characters of a class that is expanded
	literalByteMin = 2   // shorter words are in nearly every line
)

// literals describes the text that a part of a pattern matches.
type literals struct {
	exact []string // it matches one of these and nothing else; nil: not known
	need  []string // every match holds one of these; nil: not known
}

// prefilter finds words such that every match of a pattern contains one of them, so that
// only lines with such a word need the regular expression. It returns nil when
// there are none; ASCII case is ignored.
func prefilter(pattern string) *multimatch.Set {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	found := analyze(re.Simplify()).needed()
	if !useful(found) {
		return nil
	}
	var words []multimatch.Word
	for _, w := range found {
		words = append(words, multimatch.Word{Text: w, Tag: 1})
	}
	return multimatch.New(words)
}

func useful(words []string) bool {
	for _, w := range words {
		if len(w) < literalByteMin {
			return false
		}
	}
	return len(words) > 0 && len(words) <= literalsMax
}

// needed is the better known of the two sets, as words to look for.
func (l literals) needed() []string {
	if l.exact != nil && (l.need == nil || shortest(l.exact) >= shortest(l.need)) {
		return l.exact
	}
	return l.need
}

func shortest(words []string) int {
	n := 1 << 30
	for _, w := range words {
		n = min(n, len(w))
	}
	return n
}

func analyze(re *syntax.Regexp) literals {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return literals{exact: []string{""}}
	case syntax.OpLiteral:
		return literal(string(re.Rune), re.Flags&syntax.FoldCase != 0)
	case syntax.OpCharClass:
		return class(re.Rune)
	case syntax.OpCapture:
		return analyze(re.Sub[0])
	case syntax.OpPlus:
		return literals{need: analyze(re.Sub[0]).needed()}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literals{need: analyze(re.Sub[0]).needed()}
		}
	case syntax.OpQuest:
		if sub := analyze(re.Sub[0]); sub.exact != nil && len(sub.exact) < exactMax {
			return literals{exact: append([]string{""}, sub.exact...)}
		}
	case syntax.OpConcat:
		return concat(re.Sub)
	case syntax.OpAlternate:
		return alternate(re.Sub)
	}
	return literals{}
}

// literal returns the literals of a word. Where case is ignored, k, s and non-ASCII characters
// have non-ASCII forms: the longest piece without them stands for the word.
func literal(word string, folded bool) literals {
	if !folded {
		return literals{exact: []string{word}}
	}
	pieces := strings.FieldsFunc(word, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("kKsS", r) })
	if len(pieces) == 1 && pieces[0] == word {
		return literals{exact: []string{word}}
	}
	longest := ""
	for _, piece := range pieces {
		if len(piece) > len(longest) {
			longest = piece
		}
	}
	if longest == "" {
		return literals{}
	}
	return literals{need: []string{longest}}
}

func class(pairs []rune) literals {
	var exact []string
	for i := 0; i+1 < len(pairs); i += 2 {
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			if len(exact) == classMax || r >= 0x80 {
				return literals{}
			}
			exact = append(exact, string(r))
		}
	}
	return literals{exact: exact}
}

// concat joins neighbors that are known exactly and keeps the longest words seen.
func concat(subs []*syntax.Regexp) literals {
	var best []string
	keep := func(words []string) {
		if words != nil && (best == nil || shortest(words) > shortest(best)) {
			best = words
		}
	}
	run, whole := []string{""}, true
	for _, sub := range subs {
		l := analyze(sub)
		if l.exact != nil && len(run)*len(l.exact) <= exactMax {
			run = cross(run, l.exact)
			continue
		}
		keep(run)
		run, whole = []string{""}, false
		if l.exact != nil && len(l.exact) <= exactMax {
			run = l.exact
		} else {
			keep(l.needed())
		}
	}
	if whole {
		return literals{exact: run}
	}
	keep(run)
	return literals{need: best}
}

func cross(a, b []string) []string {
	words := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			words = append(words, x+y)
		}
	}
	return words
}

func alternate(subs []*syntax.Regexp) literals {
	var exact, need []string
	exactly := true
	for _, sub := range subs {
		l := analyze(sub)
		words := l.needed()
		if words == nil {
			return literals{}
		}
		if l.exact == nil {
			exactly = false
		} else {
			exact = append(exact, l.exact...)
		}
		need = append(need, words...)
	}
	if exactly && len(exact) <= exactMax {
		return literals{exact: exact}
	}
	return literals{need: need}
}
