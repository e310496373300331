package scout

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// correlator follows the ids of failing requests across log files.
var correlator = job{name: "correlator", wants: correlatorWants, answer: correlatorAnswer}

const (
	idNames   = `(request|req|trace|correlation|corr|session|tx|txn|transaction|order|job)[_-]?id`
	failWords = `ERROR|FATAL|PANIC|CRITICAL|SEVERE|error|fatal|Exception|timeout|timed out`
	idsSought = 4
	tracesMax = 3
)

var (
	idField = regexp.MustCompile(`(?i)\b` + idNames + `["']?\s*[=: ]\s*["']?([A-Za-z0-9][\w-]{3,63})`)
	uuid    = regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`)
)

// askSample asks for failing lines whose id ends in one of a few characters: an
// id that is in the sample is so in every file, and a sample is enough to follow.
func askSample(t *talk) want {
	const id = `(?i:` + idNames + `)["']?\s*[=: ]\s*["']?[\w-]*[07]\b`
	w := askLogs(t, `(`+failWords+`).*`+id+`|`+id+`.*(`+failWords+`)`, "failing lines with an id")
	w.quiet = true
	return w
}

// askAll asks for all of them, where the sample is empty.
func askAll(t *talk) want {
	return askLogs(t, `(`+failWords+`).*(?i:`+idNames+`)|(?i:`+idNames+`).*(`+failWords+`)`, "failing lines with an id")
}

// askFailingIDs is the search that the ids come from.
func askFailingIDs(t *talk) want {
	if text, ok := t.result(askSample(t)); ok && len(parseGrep(text).hits) > 0 {
		return askSample(t)
	}
	return askAll(t)
}

func correlatorWants(t *talk) []want {
	wants := []want{askSample(t)}
	if _, answered := t.find(askSample(t)); answered {
		wants = append(wants, askFailingIDs(t))
	}
	if ids := failingIDs(t); len(ids) > 0 {
		wants = append(wants, askLogs(t, strings.Join(ids, "|"), "lines of "+plural(len(ids), "failing id")))
	}
	return wants
}

// failingIDs are the first few ids of failing lines, one a file in turn.
func failingIDs(t *talk) []string {
	text, _ := t.result(askFailingIDs(t))
	byFile := map[string][]string{}
	var files []string
	for _, h := range parseGrep(text).hits {
		id := idOf(h.text)
		if id == "" {
			continue
		}
		if byFile[h.path] == nil {
			files = append(files, h.path)
		}
		if !slices.Contains(byFile[h.path], id) {
			byFile[h.path] = append(byFile[h.path], id)
		}
	}
	// An id that fails in several files first: there is something to follow.
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

func correlatorAnswer(t *talk) answer {
	var a answer
	text, ok := t.result(askFailingIDs(t))
	if ok {
		told(&a, "failing lines with an id", parseGrep(text))
		if askFailingIDs(t).key() == askSample(t).key() {
			a.limit("correlation: of the failing ids only those ending in 0 or 7 were looked at")
		}
	}
	ids := failingIDs(t)
	if len(ids) == 0 {
		a.Summary = "correlator: no failing line names a request"
		if ok {
			a.limit("correlation: no failing line with a request, trace, session or order id")
		}
		return a
	}
	followed, _ := t.result(askLogs(t, strings.Join(ids, "|"), ""))
	s := parseGrep(followed)
	told(&a, "lines of failing ids", s)
	for _, id := range ids {
		if len(a.Findings) < tracesMax {
			follow(id, s.hits, &a)
		}
	}
	a.Summary = fmt.Sprintf("correlator: %s followed", plural(len(ids), "id"))
	return a
}

var failing = regexp.MustCompile(failWords)

// follow tells the story of one id: every file once, failing lines preferred,
// in the order of time.
func follow(id string, hits []hit, a *answer) {
	best := map[string]hit{}
	var files []string
	n := 0
	for _, h := range hits {
		if !strings.Contains(h.text, id) || !quotable(h.text) {
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
		tx, okx := stampOf(best[x].text)
		ty, oky := stampOf(best[y].text)
		if !okx || !oky {
			return 0
		}
		return tx.Compare(ty)
	})
	f := finding{Kind: kindTrace, Severity: medium, Title: fmt.Sprintf("%s fails across %s: %s", id, plural(len(files), "file"), strings.Join(files, " → "))}
	for _, p := range files[:min(len(files), repeatsMax)] {
		f.Evidence = append(f.Evidence, best[p].evidence())
	}
	a.add(f)
}
