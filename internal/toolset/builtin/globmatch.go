package builtin

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// globAlternativesMax bounds the alternatives that the braces of a glob are expanded to. A glob with more is matched as
// it is.
const globAlternativesMax = 256

// compileGlob compiles a glob. If base is true, as in grep, a pattern without a slash is
// matched with the last element of a path; otherwise with the whole path.
//
// Package doublestar decides what a glob means. It reads a pattern anew for each name, expands its braces and tries
// "**/" before each element, which costs more than a search of the file. So this function does once what does not
// depend on the name: see globAlternative.
func compileGlob(pattern string, base bool) (func(name string) bool, error) {
	pattern = strings.TrimPrefix(strings.TrimSpace(pattern), "./")
	if !doublestar.ValidatePattern(pattern) {
		return nil, doublestar.ErrBadPattern
	}
	base = base && !strings.Contains(pattern, "/")
	expanded, ok := expandBraces(pattern)
	if !ok {
		expanded = []string{pattern}
	}
	alternatives := make([]globAlternative, len(expanded))
	for i, text := range expanded {
		alternatives[i] = compileAlternative(text, base)
	}
	return func(name string) bool {
		last := path.Base(name)
		for i := range alternatives {
			if alternatives[i].matches(name, last) {
				return true
			}
		}
		return false
	}, nil
}

// expandBraces returns the patterns without braces of which a name must match one; ok is false if it does not know
// them. It expands as doublestar does, the first braces first.
func expandBraces(pattern string) (list []string, ok bool) {
	if strings.ContainsRune(pattern, '\\') {
		return nil, false
	}
	rest := []string{pattern}
	for len(rest) > 0 {
		pattern, rest = rest[len(rest)-1], rest[:len(rest)-1]
		before, alternatives, behind, ok := cutBraces(pattern)
		if !ok {
			return nil, false
		}
		if alternatives == nil {
			list = append(list, pattern)
		}
		for _, text := range alternatives {
			text += behind
			if !expandsAlike(before, text) {
				return nil, false
			}
			rest = append(rest, before+text)
		}
		if len(list)+len(rest) > globAlternativesMax {
			return nil, false
		}
	}
	return list, true
}

// expandsAlike reports whether doublestar matches before{text,…} as it matches before+text. There are two exceptions. A
// star before the braces would become "**". And where a name ends before the braces, stars and slashes that are left of
// the pattern match nothing, but not if braces follow them.
func expandsAlike(before, text string) bool {
	if strings.HasSuffix(before, "**") || strings.HasSuffix(before, "*") && strings.HasPrefix(text, "*") {
		return false
	}
	open := strings.HasSuffix(before, "*") || strings.HasSuffix(before, "/")
	return !open || strings.Trim(text, "*/{},") != ""
}

// cutBraces cuts a pattern at its first braces; alternatives is nil if it has none. It is not ok with a class that holds
// a character of braces: doublestar does not skip a class in each of its searches.
func cutBraces(pattern string) (before string, alternatives []string, behind string, ok bool) {
	depth, from := 0, 0
	for i := 0; i < len(pattern); i++ {
		switch b := pattern[i]; {
		case b == '[':
			length := strings.IndexByte(pattern[i:], ']')
			if length < 0 || strings.ContainsAny(pattern[i:i+length], "{},") {
				return "", nil, "", false
			}
			i += length
		case b == '{':
			if depth++; depth == 1 {
				before, from = pattern[:i], i+1
			}
		case b == ',' && depth == 1:
			alternatives, from = append(alternatives, pattern[from:i]), i+1
		case b == '}':
			if depth--; depth == 0 {
				return before, append(alternatives, pattern[from:i]), pattern[i+1:], true
			}
		}
	}
	return pattern, nil, "", depth == 0
}

// globAlternative is a part of a glob. A name that has another ending than the pattern is refused without a match of the
// pattern, and a pattern that matches the last element of a path only is compared with that alone: byte by byte if
// it has at most one star.
type globAlternative struct {
	pattern string
	ending  string // of each name that matches; "" if it is not known
	base    bool   // the pattern is matched with the last element
	bytes   *globBytes
}

func compileAlternative(pattern string, base bool) globAlternative {
	a := globAlternative{pattern: pattern, base: base}
	if rest, ok := strings.CutPrefix(pattern, "**/"); ok && !base && staysInElement(rest) {
		a.pattern, a.base = rest, true // "**/" is any number of directories, none too
	}
	a.ending = literalEnding(a.pattern)
	if a.base {
		a.bytes = compileGlobBytes(a.pattern)
	}
	return a
}

func (a *globAlternative) matches(name, last string) bool {
	if !strings.HasSuffix(name, a.ending) {
		return false
	}
	if !a.base {
		return doublestar.MatchUnvalidated(a.pattern, name)
	}
	if a.bytes != nil && isASCII(last) {
		return a.bytes.matches(last)
	}
	return doublestar.MatchUnvalidated(a.pattern, last)
}

// staysInElement reports whether a pattern can match no slash. A class can: "[^a]" does.
func staysInElement(pattern string) bool {
	if pattern == "" || strings.ContainsAny(pattern, `/\{`) {
		return false
	}
	for {
		from := strings.IndexByte(pattern, '[')
		if from < 0 {
			return true
		}
		length := strings.IndexByte(pattern[from:], ']')
		if length < 0 || doublestar.MatchUnvalidated(pattern[from:from+length+1], "/") {
			return false
		}
		pattern = pattern[from+length+1:]
	}
}

// literalEnding returns the text behind the last character with a meaning or slash. A name that ends otherwise does not
// match. Where the pattern ends in another character than an ASCII one, doublestar compares decoded runes, not bytes.
func literalEnding(pattern string) string {
	ending := pattern[strings.LastIndexAny(pattern, `*?[]{}\/`)+1:]
	if !isASCII(ending) {
		return ""
	}
	return ending
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// globBytes is a pattern with at most one star for ASCII names without a slash: each of its other parts
// matches one byte.
type globBytes struct {
	before, behind []byteSet // the star
	star           bool
}

// byteSet has a bit for each ASCII character.
type byteSet [2]uint64

func (s *byteSet) has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

// compileGlobBytes returns nil for a pattern that has no such form.
func compileGlobBytes(pattern string) *globBytes {
	if !isASCII(pattern) || strings.ContainsAny(pattern, `\{}`) {
		return nil
	}
	g := &globBytes{}
	for i := 0; i < len(pattern); i++ {
		part := pattern[i : i+1]
		switch pattern[i] {
		case '*':
			if g.star && pattern[i-1] != '*' || strings.HasPrefix(pattern[i:], "***") { // which is no star at the end of a name
				return nil
			}
			g.star = true
			continue
		case '[':
			length := strings.IndexByte(pattern[i:], ']')
			if length < 0 {
				return nil
			}
			part = pattern[i : i+length+1]
			i += length
		}
		if set := charactersOf(part); g.star {
			g.behind = append(g.behind, set)
		} else {
			g.before = append(g.before, set)
		}
	}
	return g
}

// charactersOf asks doublestar which characters a part of a pattern matches.
func charactersOf(part string) (set byteSet) {
	for b := range byte(0x80) {
		if doublestar.MatchUnvalidated(part, string(rune(b))) {
			set[b>>6] |= 1 << (b & 63)
		}
	}
	return set
}

func (g *globBytes) matches(name string) bool {
	fixed := len(g.before) + len(g.behind)
	if len(name) < fixed || !g.star && len(name) > fixed {
		return false
	}
	for i := range g.before {
		if !g.before[i].has(name[i]) {
			return false
		}
	}
	end := name[len(name)-len(g.behind):]
	for i := range g.behind {
		if !g.behind[i].has(end[i]) {
			return false
		}
	}
	return true
}
