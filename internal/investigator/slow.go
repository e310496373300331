package investigator

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Operations that took a second or more, according to the logs.
const (
	slowWords = `\b[1-9]\d{3,6}(?:\.\d+)? ?ms\b|(?:_ms|Ms|_millis|[Ll]atency|[Dd]uration|[Ee]lapsed|responseTime)"?[=:] ?"?[1-9]\d{3,6}\b|` +
		`\b(?:took|in|after|elapsed|duration|latency)[ =:"]{1,3}[1-9]\d{0,3}(?:\.\d+)?s(?:ec\w*)?\b`

	slowRead   = 12 // lines
	slowMedium = 10 * time.Second
)

var (
	slowMillis  = lazyregexp.New(`\b([1-9]\d{3,6})(?:\.\d+)? ?ms\b|(?:_ms|Ms|_millis|[Ll]atency|[Dd]uration|[Ee]lapsed|responseTime)"?[=:] ?"?([1-9]\d{3,6})\b`)
	slowSeconds = lazyregexp.New(`\b(?:took|in|after|elapsed|duration|latency)[ =:"]{1,3}([1-9]\d{0,3}(?:\.\d+)?)s(?:ec\w*)?\b`)
)

func askSlow(t *conversation) wantedCall { return askLogs(t, slowWords, "slow operations", slowRead) }

// longestDuration is the longest time that a line names.
func longestDuration(line string) (longest time.Duration) {
	for _, m := range slowMillis.FindAllStringSubmatch(line, -1) {
		longest = max(longest, time.Duration(parseNumber(m[1])+parseNumber(m[2]))*time.Millisecond)
	}
	for _, m := range slowSeconds.FindAllStringSubmatch(line, -1) {
		if s, err := strconv.ParseFloat(m[1], 64); err == nil {
			longest = max(longest, time.Duration(s*float64(time.Second)))
		}
	}
	return longest
}

func reportSlowOperations(t *conversation, a *agentAnswer) {
	s, ok := t.grepOf(askSlow(t))
	if !ok {
		return
	}
	addSearchLimits(a, "slow operations", s)
	hits := slices.DeleteFunc(slices.Clone(s.hits), func(h fileLine) bool { return !isCitable(h.text) || longestDuration(h.text) < time.Second })
	if len(hits) == 0 {
		return
	}
	slices.SortStableFunc(hits, func(x, y fileLine) int { return int(longestDuration(y.text) - longestDuration(x.text)) })
	f := finding{Kind: kindSlow, Severity: low, Title: fmt.Sprintf("%s a second or more; the longest seen took %.1f s", formatOften(s.matches, false), longestDuration(hits[0].text).Seconds())}
	if longestDuration(hits[0].text) >= slowMedium {
		f.Severity = medium
	}
	for _, h := range hits[:min(len(hits), repeatsMax)] {
		f.Evidence = append(f.Evidence, h.asEvidence())
	}
	a.addFinding(f)
}
