package scout

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// historian reads the git history: what changes most, who knows it, and which
// of it has no tests.
var historian = job{name: "historian", wants: historianWants, answer: historianAnswer}

var (
	askNumstat = want{name: toolNumstat, args: map[string]any{}, label: "change counts"}
	askLog     = want{name: toolLog, args: map[string]any{"limit": recentShown}, label: "recent commits"}
)

const (
	recentShown    = 8
	hotShown       = 3  // hot files that become findings
	hotCommitsMin  = 8  // fewer commits make no hot spot
	hotStrong      = 30 // commits of a medium one
	historyMin     = 12 // commits below which the history tells nothing
	ownerShare     = 60 // percent of one author that is a risk
	largeLines     = 3000
	largeShown     = 2
	untestedShown  = 3
	untestedChecks = 6 // hot files whose tests are looked for
)

func historianWants(t *talk) []want {
	wants := []want{askNumstat, askLog}
	text, ok := t.result(askNumstat)
	if !ok {
		return wants
	}
	hot := hotSources(parseNumstat(text))
	for i, f := range hot {
		if i < hotShown {
			wants = append(wants, lastTouch(f.path))
		}
	}
	if glob, ok := testsOf(hot); ok {
		wants = append(wants, glob)
	}
	return wants
}

func lastTouch(p string) want {
	return want{name: toolLog, args: map[string]any{"path": p, "limit": 1}, label: "last commit of " + p}
}

// hotSources are the files of code that change often, most first.
func hotSources(h history) []hotFile {
	var hot []hotFile
	for _, f := range h.hot {
		if h.total >= historyMin && f.commits >= hotCommitsMin && isSource(f.path) && standingOf(f.path) == own && !strings.Contains(f.path, " => ") {
			hot = append(hot, f)
		}
	}
	return hot
}

// testsOf is one glob for the tests of all hot files.
func testsOf(hot []hotFile) (want, bool) {
	var names []string
	for _, f := range hot[:min(len(hot), untestedChecks)] {
		if globSafe(f.path) {
			names = append(names, testNames(f.path)...)
		}
	}
	if len(names) == 0 {
		return want{}, false
	}
	pattern := "**/{" + strings.Join(names, ",") + "}"
	return want{name: toolGlob, args: map[string]any{"pattern": pattern}, label: "tests of hot files"}, true
}

func historianAnswer(t *talk) answer {
	var a answer
	stats, haveStats := t.result(askNumstat)
	recent, haveLog := t.result(askLog)
	h, l := parseNumstat(stats), parseLog(recent)
	for _, state := range []string{h.state, l.state} {
		if state != "" {
			a.Summary = "historian: no history"
			a.limit("git history: %s", strings.Trim(state, "[]"))
			return a
		}
	}
	if (haveStats && h.total == 0 && len(h.hot) == 0) || (haveLog && l.total == 0 && len(l.commits) == 0) {
		a.limit("git history: the result could not be read")
	}
	total := max(h.total, l.total)
	a.Summary = "historian: " + plural(total, "commit")
	if h.shallow || l.shallow {
		a.limit("shallow clone: %s", plural(total, "commit"))
	}
	if len(l.commits) > 0 {
		c := l.commits[0]
		a.fact(factCommits, "%s, the last one %s by %s: “%s”", plural(total, "commit"), c.date, c.author, shorten(c.subject, subjectShown))
	}
	if h.total > 0 && h.total < historyMin {
		a.limit("history: %s, too few to tell hot spots or owners", plural(h.total, "commit"))
		return a
	}
	churn(t, h, &a)
	untested(t, h, &a)
	owners(h, l, &a)
	largeCommits(h, &a)
	return a
}

const subjectShown = 60

func churn(t *talk, h history, a *answer) {
	for i, f := range h.hot {
		if i < hotRows {
			a.fact(factHot, "%d %d %d %d %s", f.commits, f.added, f.deleted, f.authors, f.path)
		}
	}
	for i, f := range hotSources(h) {
		if i == hotShown {
			return
		}
		text, ok := t.result(lastTouch(f.path))
		last := parseLog(text)
		if !ok || len(last.commits) == 0 {
			continue
		}
		sev := low
		if f.commits >= hotStrong {
			sev = medium
		}
		a.add(finding{Kind: kindChurn, Severity: sev,
			Title: fmt.Sprintf("%s changed in %d of %s by %s (+%s -%s)", f.path, f.commits, plural(h.total, "commit"),
				plural(f.authors, "author"), thousands(int64(f.added)), thousands(int64(f.deleted))),
			Evidence: []evidence{{Commit: last.commits[0].hash, Path: f.path}}})
	}
}

// untested reports hot files that no test is named after. Tests under another
// name may exist, so it claims only what it looked for.
func untested(t *talk, h history, a *answer) {
	hot := hotSources(h)
	ask, ok := testsOf(hot)
	if !ok {
		return
	}
	text, ok := t.result(ask)
	found := parseGlob(text)
	if !ok || !found.whole || found.files > len(found.paths) {
		return
	}
	var f finding
	var names []string
	for _, file := range hot[:min(len(hot), untestedChecks)] {
		stem := strings.ToLower(strings.TrimSuffix(path.Base(file.path), path.Ext(file.path)))
		if len(testNames(file.path)) == 0 || !globSafe(file.path) || slices.Contains([]string{"index", "main", "__init__", "mod", "setup", "version"}, stem) {
			continue
		}
		if slices.ContainsFunc(found.paths, func(p string) bool { return namedAfter(path.Base(p), stem) }) {
			continue
		}
		if touch, ok := t.result(lastTouch(file.path)); ok && len(f.Evidence) < untestedShown {
			if c := parseLog(touch).commits; len(c) > 0 {
				f.Evidence = append(f.Evidence, evidence{Commit: c[0].hash, Path: file.path})
				names = append(names, file.path)
			}
		}
	}
	f.Kind, f.Severity = kindUntested, medium
	f.Title = "No test file named after " + strings.Join(names, ", ")
	a.add(f)
}

// namedAfter reports whether a test's name is made of this stem.
func namedAfter(test, stem string) bool {
	test = strings.ToLower(strings.TrimSuffix(test, path.Ext(test)))
	rest := strings.Trim(strings.Replace(test, stem, "", 1), "._-")
	return strings.Contains(test, stem) && slices.Contains([]string{"test", "tests", "spec", "it"}, rest)
}

var bots = regexp.MustCompile(`(?i)\[bot\]|^(dependabot|renovate|github-actions|greenkeeper|snyk-bot)`)

// owners tells how the commits are spread over author names.
func owners(h history, l history, a *answer) {
	var people []author
	sum := 0
	for _, p := range h.authors {
		if !bots.MatchString(p.name) {
			people = append(people, p)
			sum += p.commits
		}
	}
	slices.SortStableFunc(people, func(x, y author) int { return y.commits - x.commits })
	if len(people) == 0 || h.total == 0 {
		return
	}
	var shares []string
	half, busFactor := 0, 0
	for i, p := range people {
		if i < 3 {
			shares = append(shares, fmt.Sprintf("%s %d %%", p.name, p.commits*100/h.total))
		}
		if half*2 < sum {
			half += p.commits
			busFactor++
		}
	}
	a.fact(factAuthors, "%s; half of all commits come from %s", strings.Join(shares, ", "), plural(busFactor, "name"))
	top := people[0]
	share := top.commits * 100 / h.total
	if share < ownerShare || len(people) == 1 && h.total < hotStrong {
		return
	}
	for _, c := range append(l.commits, h.commits...) {
		if c.author == top.name {
			a.add(finding{Kind: kindOwnership, Severity: medium,
				Title:    fmt.Sprintf("%s made %d %% of the commits", top.name, share),
				Evidence: []evidence{{Commit: c.hash}}})
			return
		}
	}
}

// routine are large commits that nobody needs to review.
var routine = regexp.MustCompile(`(?i)\b(initial|import|vendor|vendored|bump|merge|generated?|regenerate|format|fmt|gofmt|lint|license|rename|move|prettier|update dep\w*|upgrade|translations?|snapshot|release)\b`)

func largeCommits(h history, a *answer) {
	shown := 0
	for _, c := range h.commits {
		if shown == largeShown {
			return
		}
		if c.added+c.deleted < largeLines || routine.MatchString(c.subject) {
			continue
		}
		shown++
		a.add(finding{Kind: kindLarge, Severity: low,
			Title: fmt.Sprintf("+%s -%s lines in %s at once: “%s” (%s, %s)", thousands(int64(c.added)), thousands(int64(c.deleted)),
				plural(c.files, "file"), shorten(c.subject, subjectShown), c.author, c.date),
			Evidence: []evidence{{Commit: c.hash}}})
	}
}
