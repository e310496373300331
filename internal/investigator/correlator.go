package investigator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/jsonlog"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// correlator follows the ids of failing requests across log files.
var correlator = childJob{name: "correlator", listCalls: correlatorWants, buildAnswer: correlatorAnswer}

const (
	idNames   = `(request|req|trace|correlation|corr|session|tx|txn|transaction|order|job)(?:[_-]?id|=|"\s*:\s*\{"id|"\s*:)`
	idsSought = 3
	tracesMax = 3

	failuresRead = 16 // lines
	tracesRead   = 40
)

var (
	idField = lazyregexp.New(`(?i)\b` + idNames + `["']?\s*[=: ]?\s*["']?([\w-]{0,63}[0-9][\w-]{0,63})`)
	uuid    = lazyregexp.New(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`)
)

// Words of failing lines, of two kinds. The first are those of a level and match few other lines. The others are in the
// texts of failures that name no level, and also in fields of lines that report success.
var (
	levelWords = strings.Join([]string{`\b(?:ERROR|ERR|FATAL|PANIC|CRITICAL|SEVERE|EMERG)\b`, `level"?[=:] ?"?(?:error|err|fatal|critical|panic)\b`, `\[error\]`, jsonlog.ErrorPattern}, "|")
	textWords  = `\b(?i:errors?|failed|failure|fatal|panic|timeout|timed out)\b|Exception\b`
)

// askFailures finds lines with these words that name a request.
func askFailures(t *conversation, words, label string) wantedCall {
	const id = `(?i:\b` + idNames + `)`
	return askLogs(t, `(?:`+words+`).*`+id+`|`+id+`.*(?:`+words+`)`, label, failuresRead)
}

func askLevelFailures(t *conversation) wantedCall {
	return askFailures(t, levelWords, "failing lines with an id")
}

func askTextFailures(t *conversation) wantedCall {
	return askFailures(t, textWords, "lines with an id that may be failing")
}

// failureSearches lists the searches for failing lines so far: by their level and, where that yields no id, by their text.
func failureSearches(t *conversation) []wantedCall {
	byLevel := askLevelFailures(t)
	if found, ok := t.grepOf(byLevel); ok && len(failingIDs(found)) == 0 {
		return []wantedCall{byLevel, askTextFailures(t)}
	}
	return []wantedCall{byLevel}
}

// findFailures is the last search for failing lines that was answered, and the call that made it.
func findFailures(t *conversation) (found grepResult, label string, ok bool) {
	for _, w := range failureSearches(t) {
		if s, answered := t.grepOf(w); answered {
			found, label, ok = s, w.label, true
		}
	}
	return found, label, ok
}

func correlatorWants(t *conversation) []wantedCall {
	wants := append(failureSearches(t), askSlow(t))
	failures, _, _ := findFailures(t)
	if ids := failingIDs(failures); len(ids) > 0 {
		wants = append(wants, askIDs(t, ids))
	}
	return wants
}

func askIDs(t *conversation, ids []string) wantedCall {
	return askLogs(t, wholeID(strings.Join(ids, "|")), "lines of "+formatCount(len(ids), "failing id"), tracesRead)
}

// wholeID is a pattern of ids that are not parts of longer ones: 77 is not in 00000077.
func wholeID(ids string) string { return `(?:^|[^\w-])(?:` + ids + `)(?:[^\w-]|$)` }

// failingIDs are the first few ids of failing lines, one a file in turn.
func failingIDs(failures grepResult) []string {
	byFile := map[string][]string{}
	var files []string
	for _, h := range failures.hits {
		id := idOf(h.text)
		r, isRecord := jsonlog.Parse(h.text)
		if id == "" || isRecord && r.Level != jsonlog.Unknown && r.Level < jsonlog.Error || !isRecord && isInformative(h.text) {
			continue
		}
		if byFile[h.path] == nil {
			files = append(files, h.path)
		}
		if !slices.Contains(byFile[h.path], id) {
			byFile[h.path] = append(byFile[h.path], id)
		}
	}
	// Ids that fail in several files come first: those can be traced.
	inFiles := map[string]int{}
	var all []string
	for _, f := range files {
		for _, id := range byFile[f] {
			if inFiles[id] == 0 {
				all = append(all, id)
			}
			inFiles[id]++
		}
	}
	slices.SortStableFunc(all, func(x, y string) int { return inFiles[y] - inFiles[x] })
	return all[:min(len(all), idsSought)]
}

func idOf(line string) string {
	if m := idField.FindStringSubmatch(line); m != nil {
		return m[len(m)-1]
	}
	return uuid.FindString(line)
}

func correlatorAnswer(t *conversation) agentAnswer {
	var a agentAnswer
	reportSlowOperations(t, &a)
	failures, label, ok := findFailures(t)
	ids := failingIDs(failures)
	if len(ids) == 0 {
		a.Summary = "correlator: no failing line that was read names a request"
		if ok {
			reportNoFailure(t, &a)
		}
		return a
	}
	followed, _ := t.resultOf(askIDs(t, ids))
	s := parseGrep(followed)
	addSearchLimits(&a, "lines of failing ids", s)
	addSearchLimits(&a, label, failures)
	for _, id := range ids {
		if len(a.Findings) < tracesMax {
			traceID(id, s.hits, &a)
		}
	}
	a.Summary = fmt.Sprintf("correlator: %s followed", formatCount(len(ids), "id"))
	return a
}

// reportNoFailure adds the limit about ids that were not found. That there are none is known only if each line that a
// search found was read, and both searches were made.
func reportNoFailure(t *conversation, a *agentAnswer) {
	read, matches, whole := 0, 0, true
	for _, w := range []wantedCall{askLevelFailures(t), askTextFailures(t)} {
		s, ok := t.grepOf(w)
		whole = whole && ok && s.complete && !s.partial && s.skipped == 0
		read, matches = read+len(s.hits), matches+s.matches
	}
	if whole {
		a.addLimit("correlation: no failing line with a request, trace, session or order id")
		return
	}
	a.addLimit("correlation: %s of %s with an id that may be failing were read, and none of those fails: the others were not looked at",
		formatThousands(int64(read)), formatCount(matches, "line"))
}

var failing = lazyregexp.New(levelWords + "|" + textWords)

// traceID traces one id: every file once, failing lines preferred, in order of time.
func traceID(id string, hits []fileLine, a *agentAnswer) {
	best := map[string]fileLine{}
	var files []string
	n, whole := 0, regexp.MustCompile(wholeID(id)) // an id has no character that means something in a pattern
	for _, h := range hits {
		if !whole.MatchString(h.text) || !isCitable(h.text) {
			continue
		}
		n++
		old, ok := best[h.path]
		if !ok {
			files = append(files, h.path)
		}
		if !ok || !failing.MatchString(old.text) && failing.MatchString(h.text) {
			best[h.path] = h
		}
	}
	if len(files) < 2 {
		return
	}
	slices.SortStableFunc(files, func(x, y string) int {
		tx, okx := parseTimestamp(best[x].text)
		ty, oky := parseTimestamp(best[y].text)
		if !okx || !oky {
			return 0
		}
		return tx.Compare(ty)
	})
	f := finding{Kind: kindTrace, Severity: medium, Title: fmt.Sprintf("%s is in %s: %s", id, formatCount(len(files), "file"), strings.Join(files, " → ")),
		Detail: "a failing request, followed by its id in the order of time"}
	for _, p := range files[:min(len(files), repeatsMax)] {
		f.Evidence = append(f.Evidence, best[p].asEvidence())
	}
	a.addFinding(f)
}
