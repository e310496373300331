package investigator

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// historian reads the git history: which files change most, their authors, and which ones have no tests.
var historian = childJob{name: "historian", listCalls: historianWants, buildAnswer: historianAnswer}

var (
	askNumstat = wantedCall{name: toolNumstat, args: map[string]any{"limit": commitsCounted}, label: "change counts"}
	askLog     = wantedCall{name: toolLog, args: map[string]any{"limit": recentShown}, label: "recent commits"}
)

const (
	recentShown    = 8
	commitsCounted = 500 // newest commits whose changes are counted
	hotShown       = 3   // hot files that become findings
	hotAsked       = 5   // hot files asked about: some may be gone
	hotCommitsMin  = 8   // fewer commits make no hot spot
	hotStrong      = 30  // commits of a medium one
	historyMin     = 12  // below this many commits, the history shows nothing
	ownerShare     = 60  // percent of one author that is a risk
	largeLines     = 3000
	largeShown     = 2
	untestedShown  = 3
)

func historianWants(t *conversation) []wantedCall {
	wants := []wantedCall{askNumstat, askLog}
	text, ok := t.resultOf(askNumstat)
	if !ok {
		return wants
	}
	h := parseNumstat(text)
	for i, f := range hotSources(h) {
		if i < hotAsked {
			wants = append(wants, lastTouch(f.path))
		}
	}
	if glob, ok := askPresent(h); ok {
		wants = append(wants, glob)
	}
	return wants
}

func lastTouch(p string) wantedCall {
	return wantedCall{name: toolLog, args: map[string]any{"path": p, "limit": 1}, label: "last commit of " + p}
}

// hotSources are the files of code that change often, most first.
func hotSources(h gitHistory) []hotFile {
	var hot []hotFile
	for _, f := range h.hot {
		if h.total >= historyMin && f.commits >= hotCommitsMin && isSource(f.path) && originOf(f.path) == ownFile && path.Base(f.path) != "setup.py" && !strings.Contains(f.path, " => ") {
			hot = append(hot, f)
		}
	}
	return hot
}

// askPresent returns one glob for those of the most changed files that still exist, and for
// the tests of the hot ones: the history also contains deleted files.
func askPresent(h gitHistory) (wantedCall, bool) {
	var names []string
	for i, f := range h.hot {
		if i < hotRows+hotAsked && globSafe(f.path) {
			names = append(names, f.path)
		}
	}
	hot := hotSources(h)
	for _, f := range hot[:min(len(hot), hotAsked)] {
		if !globSafe(f.path) {
			continue
		}
		if !slices.Contains(names, f.path) {
			names = append(names, f.path)
		}
		for _, n := range testNames(f.path) {
			names = append(names, "**/"+n)
		}
	}
	if len(names) == 0 || h.total < historyMin {
		return wantedCall{}, false
	}
	return wantedCall{name: toolGlob, args: map[string]any{"pattern": "{" + strings.Join(names, ",") + "}"}, label: "hot files and their tests"}, true
}

// existingPaths reads that glob; ok is false if it cannot tell which files are absent.
func existingPaths(t *conversation, h gitHistory) (paths []string, ok bool) {
	ask, asked := askPresent(h)
	if !asked {
		return nil, false
	}
	text, had := t.resultOf(ask)
	found := parseGlob(text)
	return found.paths, had && found.complete && found.files == len(found.paths)
}

func historianAnswer(t *conversation) agentAnswer {
	var a agentAnswer
	stats, haveStats := t.resultOf(askNumstat)
	recent, haveLog := t.resultOf(askLog)
	h, l := parseNumstat(stats), parseLog(recent)
	for _, state := range []string{h.state, l.state} {
		if state != "" {
			a.Summary = "historian: no history"
			a.addLimit("git history: %s", strings.Trim(state, "[]"))
			return a
		}
	}
	if (haveStats && h.total == 0 && len(h.hot) == 0) || (haveLog && l.total == 0 && len(l.commits) == 0) {
		a.addLimit("git history: the result could not be read")
	}
	total := max(h.total, l.total)
	a.Summary = "historian: " + formatCount(total, "commit")
	if h.shallow || l.shallow {
		a.addLimit("shallow clone: %s", formatCount(total, "commit"))
	}
	if h.total > 0 && l.total > h.total {
		a.addLimit("history: the last %s of %s commits were counted", formatThousands(int64(h.total)), formatThousands(int64(l.total)))
	}
	if len(l.commits) > 0 {
		c := l.commits[0]
		a.addFact(factCommits, "%s, the last one %s by %s: “%s”", formatCount(total, "commit"), c.date, c.author, clip.Marked(c.subject, subjectShown, "…"))
	}
	if h.total > 0 && h.total < historyMin {
		a.addLimit("history: %s, too few to tell hot spots or owners", formatCount(h.total, "commit"))
		return a
	}
	reportHotSpots(t, h, &a)
	reportUntested(t, h, &a)
	reportOwners(h, l, &a)
	reportLargeCommits(h, &a)
	return a
}

const subjectShown = 60

// reportHotSpots reports the hot spots, code before the rest, without deleted files.
func reportHotSpots(t *conversation, h gitHistory, a *agentAnswer) {
	paths, known := existingPaths(t, h)
	gone := func(f hotFile) bool { return known && globSafe(f.path) && !slices.Contains(paths, f.path) }
	hot := slices.DeleteFunc(hotSources(h), gone)
	rows := slices.Clone(hot)
	for i, f := range h.hot {
		if i < hotRows+hotAsked && f.commits > 1 && originOf(f.path) != foreignFile && !gone(f) && !slices.Contains(hot, f) {
			rows = append(rows, f)
		}
	}
	for _, f := range rows[:min(len(rows), hotRows)] {
		a.addFact(factHot, "%d %d %d %d %s", f.commits, f.added, f.deleted, f.authors, f.path)
	}
	f := finding{Kind: kindChurn, Severity: low}
	var names []string
	for _, file := range hot {
		last := parseLog(firstResult(t, lastTouch(file.path)))
		if len(last.commits) == 0 || len(names) == hotShown {
			continue
		}
		if file.commits >= hotStrong {
			f.Severity = medium
		}
		names = append(names, fmt.Sprintf("%s (%s by %s)", file.path, formatCount(file.commits, "commit"), formatCount(file.authors, "author")))
		f.Evidence = append(f.Evidence, evidence{Commit: last.commits[0].hash, Path: file.path})
	}
	f.Title = fmt.Sprintf("Most changed in %s: %s", formatCount(h.total, "commit"), strings.Join(names, ", "))
	a.addFinding(f)
}

// startFiles are named by convention, not after their contents: no test is named after
// them.
var startFiles = []string{"index", "main", "__init__", "mod", "lib", "setup", "version", "app", "types", "constants", "errors"}

// reportUntested reports hot files that no test is named after. It is a weak sign if no hot file
// has such a test: then this project names tests otherwise.
func reportUntested(t *conversation, h gitHistory, a *agentAnswer) {
	paths, known := existingPaths(t, h)
	if !known {
		return
	}
	f := finding{Kind: kindUntested, Severity: low, Detail: "no other hot file has one either: tests may be named otherwise here"}
	var names []string
	hot := hotSources(h)
	for _, file := range hot[:min(len(hot), hotAsked)] {
		stem := strings.ToLower(strings.TrimSuffix(path.Base(file.path), path.Ext(file.path)))
		if len(testNames(file.path)) == 0 || slices.Contains(startFiles, stem) || !slices.Contains(paths, file.path) {
			continue
		}
		if slices.ContainsFunc(paths, func(p string) bool { return namedAfter(path.Base(p), stem) }) {
			f.Detail = "" // the custom is followed here
			continue
		}
		if c := parseLog(firstResult(t, lastTouch(file.path))).commits; len(c) > 0 && len(f.Evidence) < untestedShown {
			f.Evidence = append(f.Evidence, evidence{Commit: c[0].hash, Path: file.path})
			names = append(names, file.path)
		}
	}
	f.Title = "No test file named after " + strings.Join(names, ", ")
	a.addFinding(f)
}

// namedAfter reports whether a test's name is made of this stem.
func namedAfter(test, stem string) bool {
	test = strings.ToLower(strings.TrimSuffix(test, path.Ext(test)))
	rest := strings.Trim(strings.Replace(test, stem, "", 1), "._-")
	return strings.Contains(test, stem) && slices.Contains([]string{"test", "tests", "spec", "it"}, rest)
}

var botAuthor = lazyregexp.New(`(?i)\[bot\]|^(dependabot|renovate|github-actions|greenkeeper|snyk-bot)`)

// reportOwners reports how the commits are distributed over author names.
func reportOwners(h gitHistory, l gitHistory, a *agentAnswer) {
	var people []authorStat
	for _, p := range h.authors {
		if !botAuthor.MatchString(p.name) {
			people = append(people, p)
		}
	}
	slices.SortStableFunc(people, func(x, y authorStat) int { return y.commits - x.commits })
	if len(people) == 0 || h.total == 0 {
		return
	}
	var shares []string
	half, busFactor := 0, 0
	for i, p := range people {
		if i < 3 {
			shares = append(shares, fmt.Sprintf("%s %d %%", p.name, p.commits*100/h.total))
		}
		if half*2 < h.total {
			half += p.commits
			busFactor++
		}
	}
	of := "all"
	if l.total > h.total {
		of = "the last " + formatThousands(int64(h.total))
	}
	names := formatCount(busFactor, "name")
	if half*2 < h.total {
		names = "more than " + names // the list of authors ends before the half is reached
	}
	a.addFact(factAuthors, "%s; half of %s commits come from %s", strings.Join(shares, ", "), of, names)
	top := people[0]
	share := top.commits * 100 / h.total
	if share < ownerShare || len(people) == 1 && h.total < hotStrong {
		return
	}
	sev := medium
	if len(people) == 1 {
		sev = low // a project of one person: no news
	}
	for _, c := range append(l.commits, h.commits...) {
		if c.author == top.name {
			a.addFinding(finding{Kind: kindOwnership, Severity: sev,
				Title:    fmt.Sprintf("%s made %d %% of %s", top.name, share, formatCount(h.total, "commit")),
				Evidence: []evidence{{Commit: c.hash}}})
			return
		}
	}
}

// routineSubject matches the subjects of large commits that need no review.
var routineSubject = lazyregexp.New(`(?i)\b(initial|import|vendor|vendored|bump|merge|generated?|regenerate|format|fmt|gofmt|lint|license|rename|move|prettier|update dep\w*|upgrade|translations?|snapshot|release)\b`)

func reportLargeCommits(h gitHistory, a *agentAnswer) {
	f := finding{Kind: kindLarge, Severity: low}
	var names []string
	for _, c := range h.commits {
		if c.added+c.deleted < largeLines || routineSubject.MatchString(c.subject) || len(names) == largeShown {
			continue
		}
		names = append(names, fmt.Sprintf("“%s” (+%s -%s in %s, %s)", clip.Marked(c.subject, subjectShown, "…"), formatThousands(int64(c.added)),
			formatThousands(int64(c.deleted)), formatCount(c.files, "file"), c.date))
		f.Evidence = append(f.Evidence, evidence{Commit: c.hash})
	}
	f.Title = "Very large commit: " + strings.Join(names, ", ")
	a.addFinding(f)
}
