package investigator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// auditor searches the source for problems that rules can find in one line.
var auditor = childJob{name: "auditor", listCalls: auditorWants, buildAnswer: auditorAnswer, answerMax: auditBytesMax}

const (
	auditBytesMax = 2600
	// largeTree is the number of files from which frequent and harmless patterns are left out:
	// a hundred lines of them would hide the rest.
	largeTree  = 400
	auditUsual = 100 // files searched at once, see searchProbe
	auditRoom  = 2000
	// In a huge tree the search begins with less: a wrong estimate costs most there.
	hugeTree, auditHuge = 2000, 30
	manyPlaces          = 10 // places from which on a low claim is a medium one
	// generatedRepeats of the same line indicate generated code.
	generatedRepeats = 25
	configGlobs      = "*.env,.env*,*.yml,*.yaml,*.properties,*.toml,*.ini,*.tf"
)

// auditTopic is one search and the rules that read it.
type auditTopic struct {
	label string
	rules []auditRule
}

func auditTopics() []auditTopic {
	return []auditTopic{
		{"secrets", secretRules},
		{"swallowed errors", swallowRules},
		{"risky calls", riskRules},
		{"open markers", markerRules},
	}
}

// appliesTo reports whether a rule is for one of these extensions.
func (r auditRule) appliesTo(exts []string) bool {
	return len(r.exts) == 0 || slices.ContainsFunc(exts, func(e string) bool { return slices.Contains(r.exts, e) })
}

func (tp auditTopic) activeRules(h hints) []auditRule {
	var rules []auditRule
	for _, r := range tp.rules {
		if r.appliesTo(h.Exts) && (!r.frequent || h.Files < largeTree) {
			rules = append(rules, r)
		}
	}
	return rules
}

// grepProbe returns the one grep of a topic.
func (tp auditTopic) grepProbe(h hints) (searchProbe, bool) {
	rules := tp.activeRules(h)
	if len(rules) == 0 {
		return searchProbe{}, false
	}
	var patterns, exts []string
	for _, r := range rules {
		// a word boundary in front keeps RE2 from searching fast
		patterns = append(patterns, strings.TrimPrefix(r.pattern, `\b`))
	}
	for _, e := range h.Exts {
		if slices.ContainsFunc(rules, func(r auditRule) bool { return len(r.exts) == 0 || slices.Contains(r.exts, e) }) {
			exts = append(exts, e)
		}
	}
	var more []string
	if tp.label == "secrets" {
		more = strings.Split(configGlobs, ",")
	}
	usual := auditUsual
	if h.Files >= hugeTree {
		usual = auditHuge
	}
	return searchProbe{firstParts: h.Files / usual, resultBytesMax: auditRoom, searchPart: func(k int) wantedCall {
		return wantedCall{name: toolGrep, args: map[string]any{"pattern": strings.Join(patterns, "|"), "glob": partGlob(exts, more, k)}, label: tp.label}
	}}, true
}

// auditHints falls back to the commonest languages when the task named none.
func auditHints(t *conversation) hints {
	h := t.hints
	if len(h.Exts) == 0 {
		h.Exts = []string{".go", ".py", ".js", ".ts", ".java", ".rs", ".rb", ".c"}
	}
	return h
}

func auditorWants(t *conversation) []wantedCall {
	var wants []wantedCall
	for _, tp := range auditTopics() {
		if p, ok := tp.grepProbe(auditHints(t)); ok {
			r := p.run(t)
			wants = append(wants, r.wants...)
			if r.done {
				wants = append(wants, tp.nearbyWants(t, r.lastResult)...)
			}
		}
	}
	return wants
}

func auditorAnswer(t *conversation) agentAnswer {
	a := agentAnswer{}
	h := auditHints(t)
	seen := 0
	for _, tp := range auditTopics() {
		p, ok := tp.grepProbe(h)
		if !ok {
			continue
		}
		r := p.run(t)
		if !r.ok {
			continue
		}
		s := r.lastResult
		seen = max(seen, s.searched)
		if r.parts > 1 {
			a.addLimit("%s: %s searched, one in %d by name", tp.label, formatCount(s.searched, "file"), r.parts)
		} else if s.partial {
			a.addLimit("%s: the first %d of %s matching lines were read", tp.label, len(s.hits), formatThousands(int64(s.matches)))
		}
		if s.skipped > 0 {
			a.addLimit("%s: %s skipped", tp.label, formatCount(s.skipped, "large file"))
		}
		if !s.complete && len(s.hits) == 0 {
			a.addLimit("%s: the result could not be read", tp.label)
		}
		for _, r := range tp.activeRules(h) {
			r.reportMatches(t, s, &a)
		}
	}
	if h.Files >= largeTree {
		a.addLimit("audit: patterns that are frequent and mostly harmless were not searched in a tree of this size")
	}
	a.Summary = fmt.Sprintf("auditor: %s in %s searched", formatCount(len(a.Findings), "claim"), formatCount(seen, "file"))
	return a
}

var comment = lazyregexp.New(`^\s*(//|#|\*|/\*|--|<!--|;|%|"""|''')`)

// ownMatches are the lines that this rule means, those of the product and those that only support it.
func (r auditRule) ownMatches(s grepResult) (mine, tests []fileLine) {
	re := regexp.MustCompile(r.pattern)
	for _, h := range s.hits {
		if !re.MatchString(h.text) || !r.matchesLine(h) {
			continue
		}
		switch originOf(h.path) {
		case ownFile:
			mine = append(mine, h)
		case supportingFile:
			tests = append(tests, h)
		}
	}
	return mine, tests
}

// reportMatches turns the lines that this rule means into one finding with the best
// few places, and one of low severity when all of them are in tests.
func (r auditRule) reportMatches(t *conversation, s grepResult, a *agentAnswer) {
	mine, tests := r.ownMatches(s)
	if r.nearby {
		var unread int
		if mine, unread = withoutExplained(t, mine); unread > 0 {
			s.partial = true
			a.addLimit("%s: %s not looked at with the code around, and not counted", r.kind, formatCount(unread, "place"))
		}
	}
	files := map[string]bool{}
	for _, h := range mine {
		files[h.path] = true
	}
	f := finding{Kind: r.kind, Severity: r.severity, Detail: r.why}
	if r.raise != nil && slices.ContainsFunc(mine, func(h fileLine) bool { return r.raise.MatchString(h.text) }) {
		f.Severity = r.raised
		slices.SortStableFunc(mine, func(x, y fileLine) int {
			return boolToInt(r.raise.MatchString(y.text)) - boolToInt(r.raise.MatchString(x.text))
		})
	}
	switch {
	case len(mine) > 0:
		f.Title = r.title + " in " + formatCount(len(mine), "place")
		if s.partial {
			f.Title = r.title + " in at least " + formatCount(len(mine), "place")
		}
		if len(files) > 1 {
			f.Title += " (" + formatCount(len(files), "file") + ")"
		}
		if f.Severity == low && len(mine) >= manyPlaces && r.kind == kindSwallowed {
			f.Severity = medium
		}
	case len(tests) > 0 && r.inTests:
		mine = tests
		f.Severity, f.Title = low, r.title+" in "+formatCount(len(tests), "place")+", all in tests, examples or documents"
	}
	if n := sameLine(mine); n >= generatedRepeats && n*2 > len(mine) {
		f.Severity, f.Detail = low, fmt.Sprintf("one line stands there %d times: probably generated code", n)
	}
	for _, h := range spreadByFile(mine) {
		f.Evidence = append(f.Evidence, h.asEvidence())
	}
	a.addFinding(f)
}

// sameLine returns how often the most frequent text occurs in these lines.
func sameLine(hits []fileLine) (most int) {
	n := map[string]int{}
	for _, h := range hits {
		text := strings.TrimSpace(h.text)
		n[text]++
		most = max(most, n[text])
	}
	return most
}

// explained matches a line whose own comment says why it is as it is: a reader would only lose time.
var explained = lazyregexp.New(`(?i)(?://|#|/\*|--|;).*\b(?:never fails?|(?:can ?not|can't) fail|nowhere to report|harmless|safe|ignored?|already (?:gone|closed|removed)|best[- ]effort|on purpose|deliberate(?:ly)?|intentional(?:ly)?|is only read|false positive|nolint|noqa|nosec)\b`)

// matchesLine reports whether a rule applies to a line with its pattern.
func (r auditRule) matchesLine(h fileLine) bool {
	switch {
	case len(r.exts) > 0 && !slices.Contains(r.exts, extOf(h.path)), !isQuotable(h.text):
		return false
	case r.notPath != nil && r.notPath.MatchString(h.path), r.code && comment.MatchString(h.text):
		return false
	case r.noteExplains && noteAfterCode.MatchString(h.text):
		return false
	case explained.MatchString(h.text), r.not != nil && r.not.MatchString(h.text), r.must != nil && !r.must.MatchString(h.text):
		return false
	}
	return true
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// spreadByFile takes the first line of each file before a second of any.
func spreadByFile(hits []fileLine) []fileLine { return spreadOver(hits, repeatsMax) }

func spreadOver(hits []fileLine, most int) []fileLine {
	var first, rest []fileLine
	seen := map[string]bool{}
	for _, h := range hits {
		if seen[h.path] {
			rest = append(rest, h)
			continue
		}
		seen[h.path] = true
		first = append(first, h)
	}
	all := append(first, rest...)
	return all[:min(len(all), most)]
}
