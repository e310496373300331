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
	failWords = `ERROR|FATAL|PANIC|CRITICAL|SEVERE|error|fatal|Exception|timeout|timed out|"level": ?(?:50|60)\b`
	idsSought = 3
	tracesMax = 3

	failuresRead = 16 // lines
	tracesRead   = 40
)

var (
	idField = lazyregexp.New(`(?i)\b` + idNames + `["']?\s*[=: ]?\s*["']?([\w-]{0,63}[0-9][\w-]{0,63})`)
	uuid    = lazyregexp.New(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`)
)

// askFailures finds failing lines that name a request.
func askFailures(t *conversation) wantedCall {
	const id = `(?i:\b` + idNames + `)`
	return askLogs(t, `(?:`+failWords+`).*`+id+`|`+id+`.*(?:`+failWords+`)`, "failing lines with an id", failuresRead)
}

func correlatorWants(t *conversation) []wantedCall {
	wants := []wantedCall{askFailures(t), askSlow(t)}
	failures, _ := t.grepOf(wants[0])
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
	failures, ok := t.grepOf(askFailures(t))
	ids := failingIDs(failures)
	if len(ids) == 0 {
		a.Summary = "correlator: no failing line names a request"
		if ok {
			a.addLimit("correlation: no failing line with a request, trace, session or order id")
		}
		return a
	}
	followed, _ := t.resultOf(askIDs(t, ids))
	s := parseGrep(followed)
	addSearchLimits(&a, "lines of failing ids", s)
	addSearchLimits(&a, "failing lines with an id", failures)
	for _, id := range ids {
		if len(a.Findings) < tracesMax {
			traceID(id, s.hits, &a)
		}
	}
	a.Summary = fmt.Sprintf("correlator: %s followed", formatCount(len(ids), "id"))
	return a
}

var failing = lazyregexp.New(failWords)

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
