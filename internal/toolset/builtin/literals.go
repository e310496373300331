package builtin

import (
	"math/bits"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/troupe-run/troupe/internal/multimatch"
	"github.com/troupe-run/troupe/internal/redact"
)

// Bounds of the analysis of a pattern: past them it is simply not done.
const (
	literalsMax     = 600 // words
	alternativesMax = 64  // alternatives that are tried on their own
	exactMax        = 96  // words that one part may be expanded to
	classMax        = 10  // characters of a class that is expanded
	literalByteMin  = 2   // shorter words are in nearly every line
)

// literalSet describes the text that a part of a pattern matches.
type literalSet struct {
	exact []string // it matches one of these and nothing else; nil: not known
	need  []string // every match holds one of these; nil: not known
}

// linePattern tells which lines match an expression. Each alternative of the expression runs only on lines that hold one
// of the words that it needs: most lines of a log hold none.
type linePattern struct {
	words  *multimatch.WordSet // nil: none needs a word
	needed []*regexp.Regexp    // by the bit of their words
	rest   *regexp.Regexp      // the alternatives that need no word; nil: there are none
	shown  bool                // a word may stand in a masked line and not in the line itself
}

// compileLinePattern compiles an expression. ASCII case of words is ignored.
func compileLinePattern(pattern string) (*linePattern, error) {
	whole, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	plain := &linePattern{rest: whole}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return plain, nil //nolint:nilerr // the analysis is not done
	}
	p, rest, words := &linePattern{}, []*syntax.Regexp{}, []multimatch.Word{}
	parts := alternatives(tree)
	for _, part := range parts {
		found := analyzePattern(part.Simplify()).neededWords()
		if !areUseful(found) || len(words)+len(found) > literalsMax || len(p.needed) == alternativesMax {
			rest = append(rest, part)
			continue
		}
		re := whole
		if len(parts) > 1 { // the text of a part is made anew, which takes longer than to compile it
			if re, err = regexp.Compile(part.String()); err != nil {
				return plain, nil //nolint:nilerr // a part on its own is too large, and the whole is not
			}
		}
		for _, w := range found {
			words = append(words, multimatch.Word{Text: w, Tag: 1 << len(p.needed)})
			p.shown = p.shown || overlaps(strings.ToLower(w), redact.Replacement)
		}
		p.needed = append(p.needed, re)
	}
	if len(p.needed) == 0 {
		return plain, nil
	}
	p.words = multimatch.New(words)
	if len(rest) > 0 {
		if p.rest, err = regexp.Compile((&syntax.Regexp{Op: syntax.OpAlternate, Flags: tree.Flags, Sub: rest}).String()); err != nil {
			return plain, nil //nolint:nilerr // as above
		}
	}
	return p, nil
}

// alternatives are the expressions of which a line must match one.
func alternatives(re *syntax.Regexp) []*syntax.Regexp {
	if re.Op == syntax.OpAlternate {
		return re.Sub
	}
	return []*syntax.Regexp{re}
}

func (p *linePattern) matches(line []byte) bool {
	var tags uint64
	if p.words != nil {
		tags = p.words.MatchTags(line)
	}
	for ; tags != 0; tags &= tags - 1 {
		if p.needed[bits.TrailingZeros64(tags)].Match(line) {
			return true
		}
	}
	return p.rest != nil && p.rest.Match(line)
}

// rulesOut reports whether no line of a text can match: none has a word that it would need. The text is not masked yet,
// so a word that a mask may bring rules out nothing.
func (p *linePattern) rulesOut(text []byte) bool {
	return p.rest == nil && !p.shown && p.words.MatchTags(text) == 0
}

// overlaps reports whether two texts, laid over each other at any offset, agree in all characters that they share.
func overlaps(a, b string) bool {
	for offset := 1 - len(b); offset < len(a); offset++ {
		from, to := max(offset, 0), min(offset+len(b), len(a))
		if a[from:to] == b[from-offset:to-offset] {
			return true
		}
	}
	return false
}

func areUseful(words []string) bool {
	for _, w := range words {
		if len(w) < literalByteMin {
			return false
		}
	}
	return len(words) > 0 && len(words) <= literalsMax
}

// neededWords is the better known of the two sets, as words to look for.
func (l literalSet) neededWords() []string {
	if l.exact != nil && (l.need == nil || shortestLength(l.exact) >= shortestLength(l.need)) {
		return l.exact
	}
	return l.need
}

func shortestLength(words []string) int {
	n := 1 << 30
	for _, w := range words {
		n = min(n, len(w))
	}
	return n
}

func analyzePattern(re *syntax.Regexp) literalSet {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return literalSet{exact: []string{""}}
	case syntax.OpLiteral:
		return wordLiterals(string(re.Rune), re.Flags&syntax.FoldCase != 0)
	case syntax.OpCharClass:
		return classLiterals(re.Rune)
	case syntax.OpCapture:
		return analyzePattern(re.Sub[0])
	case syntax.OpPlus:
		return literalSet{need: analyzePattern(re.Sub[0]).neededWords()}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literalSet{need: analyzePattern(re.Sub[0]).neededWords()}
		}
	case syntax.OpQuest:
		if sub := analyzePattern(re.Sub[0]); sub.exact != nil && len(sub.exact) < exactMax {
			return literalSet{exact: append([]string{""}, sub.exact...)}
		}
	case syntax.OpConcat:
		return concatLiterals(re.Sub)
	case syntax.OpAlternate:
		return alternateLiterals(re.Sub)
	}
	return literalSet{}
}

// wordLiterals returns the literals of a word. Where case is ignored, k, s and non-ASCII characters have non-ASCII
// forms: the longest piece without them represents the word.
func wordLiterals(word string, folded bool) literalSet {
	if !folded {
		return literalSet{exact: []string{word}}
	}
	pieces := strings.FieldsFunc(word, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("kKsS", r) })
	if len(pieces) == 1 && pieces[0] == word {
		return literalSet{exact: []string{word}}
	}
	longest := ""
	for _, piece := range pieces {
		if len(piece) > len(longest) {
			longest = piece
		}
	}
	if longest == "" {
		return literalSet{}
	}
	return literalSet{need: []string{longest}}
}

func classLiterals(pairs []rune) literalSet {
	var exact []string
	for i := 0; i+1 < len(pairs); i += 2 {
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			if len(exact) == classMax || r >= 0x80 {
				return literalSet{}
			}
			exact = append(exact, string(r))
		}
	}
	return literalSet{exact: exact}
}

// concatLiterals joins neighbors that are known exactly and keeps the longest words seen.
func concatLiterals(subs []*syntax.Regexp) literalSet {
	var best []string
	keep := func(words []string) {
		if words != nil && (best == nil || shortestLength(words) > shortestLength(best)) {
			best = words
		}
	}
	run, whole := []string{""}, true
	for _, sub := range subs {
		l := analyzePattern(sub)
		if l.exact != nil && len(run)*len(l.exact) <= exactMax {
			run = crossWords(run, l.exact)
			continue
		}
		keep(run)
		run, whole = []string{""}, false
		if l.exact != nil && len(l.exact) <= exactMax {
			run = l.exact
		} else {
			keep(l.neededWords())
		}
	}
	if whole {
		return literalSet{exact: run}
	}
	keep(run)
	return literalSet{need: best}
}

func crossWords(a, b []string) []string {
	words := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			words = append(words, x+y)
		}
	}
	return words
}

func alternateLiterals(subs []*syntax.Regexp) literalSet {
	var exact, need []string
	exactly := true
	for _, sub := range subs {
		l := analyzePattern(sub)
		words := l.neededWords()
		if words == nil {
			return literalSet{}
		}
		if l.exact == nil {
			exactly = false
		} else {
			exact = append(exact, l.exact...)
		}
		need = append(need, words...)
	}
	if exactly && len(exact) <= exactMax {
		return literalSet{exact: exact}
	}
	return literalSet{need: need}
}
