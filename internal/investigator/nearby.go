package investigator

import (
	"regexp"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

const (
	nearbyLines  = 8 // lines above that are read
	nearbyPlaces = 8 // places that are looked at with the lines above
)

var (
	// noteAfterCode is a comment behind the code of a line.
	noteAfterCode = lazyregexp.New(`\S\s+(?://|/\*)\s*\S`)
	noteAbove     = lazyregexp.New(`^\s*(?://|/\*|\*)`)
	deferred      = lazyregexp.New(`^\s*(?:defer|go) |Cleanup\(func`)
	receiver      = lazyregexp.New(`= ((?:\w+\.)*\w+)\.\w+\(`)
	// memoryType is a type whose writes cannot fail, or a call that makes one.
	memoryType = `(?:strings\.Builder|bytes\.Buffer|bytes\.NewBuffer|hash\.Hash|(?:sha\d+|md5|crc\d+|fnv|hmac|adler32|maphash|blake\w+|xxhash)\.(?:New|Hash))`
)

// askNearby reads a line with those above it.
func askNearby(h fileLine) wantedCall {
	first := max(h.line-nearbyLines, 1)
	return wantedCall{name: toolRead, args: map[string]any{"path": h.path, "offset": first, "limit": h.line - first + 1}, label: "code around " + h.path, quiet: true}
}

// nearbyWants lists the looks at the code around the lines that need one.
func (tp auditTopic) nearbyWants(t *conversation, s grepResult) (wants []wantedCall) {
	for _, r := range tp.activeRules(auditHints(t)) {
		if !r.nearby {
			continue
		}
		mine, _ := r.ownMatches(s)
		for _, h := range nearbyCandidates(mine) {
			wants = append(wants, askNearby(h))
		}
	}
	return wants
}

// nearbyCandidates are the places that are looked at, one of each file before a second of any.
func nearbyCandidates(mine []fileLine) []fileLine { return spreadOver(mine, nearbyPlaces) }

// withoutExplained keeps the lines that neither a comment above nor what they write to explains, of those that were
// looked at; unread is how many were not.
func withoutExplained(t *conversation, mine []fileLine) (kept []fileLine, unread int) {
	chosen := nearbyCandidates(mine)
	unread = len(mine) - len(chosen)
	for _, h := range chosen {
		text, ok := t.resultOf(askNearby(h))
		lines := parseRead(h.path, text).lines
		switch {
		case !ok || len(lines) == 0:
			unread++
		case !isExplainedAbove(h, lines[:len(lines)-1]):
			kept = append(kept, h)
		}
	}
	return kept, unread
}

func isExplainedAbove(h fileLine, above []fileLine) bool {
	if len(above) == 0 {
		return false
	}
	if noteAbove.MatchString(above[len(above)-1].text) {
		return true
	}
	var inMemory *regexp.Regexp
	if m := receiver.FindStringSubmatch(h.text); m != nil {
		inMemory = regexp.MustCompile(`\b` + regexp.QuoteMeta(m[1]) + `\b.*` + memoryType)
	}
	depth := indentOf(h.text)
	for i := len(above) - 1; i >= 0; i-- {
		text := above[i].text
		if inMemory != nil && inMemory.MatchString(text) {
			return true
		}
		if strings.TrimSpace(text) != "" && indentOf(text) < depth { // a line that encloses it
			depth = indentOf(text)
			if deferred.MatchString(text) {
				return true
			}
		}
	}
	return false
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
