package investigator

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Operations that took a second or more, according to the logs.
const (
	slowWords = `\b[1-9]\d{3,6}(?:\.\d+)? ?ms\b|(?:_ms|Ms|_millis|[Ll]atency|[Dd]uration|[Ee]lapsed)"?[=:] ?"?[1-9]\d{3,6}\b|` +
		`\b(?:took|in|after|elapsed|duration|latency)[ =:"]{1,3}[1-9]\d{0,3}(?:\.\d+)?s(?:ec\w*)?\b`

	slowUsual, slowRoom = 20, 1200 // see logProbe
	slowMedium          = 10 * time.Second
)

var (
	slowMillis  = regexp.MustCompile(`\b([1-9]\d{3,6})(?:\.\d+)? ?ms\b|(?:_ms|Ms|_millis|[Ll]atency|[Dd]uration|[Ee]lapsed)"?[=:] ?"?([1-9]\d{3,6})\b`)
	slowSeconds = regexp.MustCompile(`\b(?:took|in|after|elapsed|duration|latency)[ =:"]{1,3}([1-9]\d{0,3}(?:\.\d+)?)s(?:ec\w*)?\b`)
)

func slowProbe(t *talk) probe {
	return logProbe(t, slowWords, "slow operations", slowUsual, slowRoom)
}

// tookOf is the longest time that a line names.
func tookOf(line string) (longest time.Duration) {
	for _, m := range slowMillis.FindAllStringSubmatch(line, -1) {
		longest = max(longest, time.Duration(number(m[1])+number(m[2]))*time.Millisecond)
	}
	for _, m := range slowSeconds.FindAllStringSubmatch(line, -1) {
		if s, err := strconv.ParseFloat(m[1], 64); err == nil {
			longest = max(longest, time.Duration(s*float64(time.Second)))
		}
	}
	return longest
}

func slow(t *talk, a *answer) {
	p := slowProbe(t).run(t)
	if !p.ok {
		return
	}
	toldPart(a, "slow operations", p)
	hits := slices.DeleteFunc(slices.Clone(p.got.hits), func(h hit) bool { return !quotable(h.text) || tookOf(h.text) < time.Second })
	if len(hits) == 0 {
		return
	}
	slices.SortStableFunc(hits, func(x, y hit) int { return int(tookOf(y.text) - tookOf(x.text)) })
	f := finding{Kind: kindSlow, Severity: low, Title: fmt.Sprintf("%s× a second or more; the longest seen took %.1f s", estimate(p.got.matches, p.k), tookOf(hits[0].text).Seconds())}
	if tookOf(hits[0].text) >= slowMedium {
		f.Severity = medium
	}
	for _, h := range hits[:min(len(hits), repeatsMax)] {
		f.Evidence = append(f.Evidence, h.evidence())
	}
	a.add(f)
}
