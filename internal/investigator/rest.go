package investigator

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Part of the failing lines shows the frequent messages; a rare one may be the revealing
// one. The pattern language cannot express "not", but it can list every character at which
// a text departs from given beginnings.

const (
	beginningMax = 20 // bytes
	beginningMin = 3
	beginnings   = 12 // of one word
)

// remainderPattern matches the lines that contain one of the words, except those that continue like
// the given lines.
func remainderPattern(words []string, lines []fileLine) string {
	var all []string
	for _, word := range words {
		re := regexp.MustCompile(word)
		known := map[string]bool{}
		short := false
		for _, h := range lines {
			for _, at := range re.FindAllStringIndex(h.text, -1) {
				b := fixedBeginning(h.text[at[1]:])
				known[b] = true
				short = short || len(b) < beginningMin
			}
		}
		switch {
		case len(known) == 0:
			all = append(all, word)
		case !short && len(known) <= beginnings:
			all = append(all, "(?:"+word+")(?:"+departurePattern(slices.Sorted(maps.Keys(known)))+")")
		}
	}
	return strings.Join(all, "|")
}

// fixedBeginning is the fixed text that a message starts with.
func fixedBeginning(s string) string {
	for i, r := range s {
		if i >= beginningMax || r < ' ' || r > '~' || r >= '0' && r <= '9' {
			return s[:i]
		}
	}
	return s
}

// departurePattern matches a text at the first character that none of these texts has at that
// position.
func departurePattern(known []string) string {
	next := map[byte][]string{}
	for _, k := range known {
		if k == "" {
			return `[^\x00-\x{10FFFF}]` // one of the texts ends here: all text after it is known
		}
		next[k[0]] = append(next[k[0]], k[1:])
	}
	first := slices.Sorted(maps.Keys(next))
	var b strings.Builder
	b.WriteString("[^")
	for _, c := range first {
		b.WriteString(`\x` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
	}
	b.WriteString("]")
	for _, c := range first {
		if slices.Contains(next[c], "") {
			continue
		}
		b.WriteString("|" + regexp.QuoteMeta(string(rune(c))) + "(?:" + departurePattern(next[c]) + ")")
	}
	return b.String()
}
