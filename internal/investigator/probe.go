package investigator

import (
	"math"
	"strings"
)

// A tool result is reserved by its bytes before its tokens are known, so a search that
// finds much can cost a child its turn. A probe therefore looks at one part of the place
// first, estimates from it how much there is, and asks for all of it only if that is
// little.
type searchProbe struct {
	searchPart     func(k int) wantedCall // the search in one part of k
	firstParts     int                    // the k to begin with
	resultBytesMax int                    // bytes that the last result may have
}

const (
	partsMax   = 512
	lineGuess  = 110 // bytes of a result line when none was seen
	linesLeast = 8   // a part with fewer lines estimates nothing
	worthwhile = 4   // another search must yield this many times as much
)

// probeProgress is the progress of a probe.
type probeProgress struct {
	wants      []wantedCall // every search so far, the missing one last
	lastResult grepResult   // of the last one answered
	parts      int          // its part: 1 is everything
	done       bool         // no further search is wanted
	ok         bool
}

func (p searchProbe) run(t *conversation) probeProgress {
	r := probeProgress{parts: powerOf2(p.firstParts)}
	for k := r.parts; ; {
		w := p.searchPart(k)
		r.wants = append(r.wants, w)
		text, ok := t.resultOf(w)
		if !ok {
			return r
		}
		r.lastResult, r.parts, r.ok = parseGrep(text), k, true
		if k > 1 {
			r.lastResult.partial = true
		}
		room := p.linesThatFit(r.lastResult)
		next := powerOf2((upperEstimate(r.lastResult.matches, k) + room - 1) / room)
		// A search that finds only a little more is not worth a turn.
		if next*worthwhile > k || k == 1 {
			r.done = true
			return r
		}
		k = next
	}
}

// linesThatFit is how many lines like these fit in the room.
func (p searchProbe) linesThatFit(s grepResult) int {
	each := lineGuess
	if len(s.hits) > 0 {
		sum := 0
		for _, h := range s.hits {
			sum += len(h.path) + len(h.text) + len(":12345:\n")
		}
		each = sum / len(s.hits)
	}
	return max(p.resultBytesMax/each, linesLeast)
}

// upperEstimate is a cautious estimate of all matches if one part in k had n.
func upperEstimate(n, k int) int {
	if k <= 1 {
		return n
	}
	return int(float64(k) * (float64(n) + math.Sqrt(float64(n)) + 1))
}

// powerOf2 is the smallest power of two that is not below n.
func powerOf2(n int) int {
	k := 1
	for k < n && k < partsMax {
		k *= 2
	}
	return k
}

// Names are divided by their last letters, which vary more than the first ones. Each set
// covers about its share of the names in use, and of the digits.
var letterParts = map[int]string{2: "[aehilmnopuwyAEHILMNOPUWY02468]", 4: "[nlmyoNLMYO048]", 8: "[ngNG1]"}

// namesPart is a glob piece that one name in k ends in; "" for all.
func namesPart(k int) string {
	var b strings.Builder
	for k > 1 {
		step := min(k, 8)
		b.WriteString(letterParts[step])
		k /= step
	}
	return b.String()
}

// inPart limits every name of a glob to one part of k.
func inPart(glob string, k int) string {
	if k <= 1 {
		return glob
	}
	const anyDir = "\x00"
	glob = strings.ReplaceAll(glob, "**", anyDir)
	glob = strings.ReplaceAll(glob, "*", "*"+namesPart(k))
	return strings.ReplaceAll(glob, anyDir, "**")
}

// partGlob is sourceGlob for one part in k, without the pieces that only exclude tests: a
// part has few tests, and a glob is paid for again in every turn.
func partGlob(exts, more []string, k int) string {
	if k <= 1 || len(exts) == 0 {
		return inPart(sourceGlob(exts, more), k)
	}
	var alts []string
	for _, e := range exts {
		alts = append(alts, "*"+e)
	}
	return inPart("**/"+anyOf(append(alts, more...)), k)
}

// formatEstimate formats a number that was extrapolated from one part in k.
func formatEstimate(n, k int) string {
	if k <= 1 {
		return formatThousands(int64(n))
	}
	n *= k
	for unit := 10; n >= 10*unit; unit *= 10 {
		if n < 100*unit {
			n = (n + unit/2) / unit * unit
		}
	}
	return "about " + formatThousands(int64(n))
}
