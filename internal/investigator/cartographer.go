package investigator

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// cartographer maps the source: its purpose, its entry points, the size of its files, and
// whether it has tests.
var cartographer = childJob{name: "cartographer", listCalls: cartographerWants, buildAnswer: cartographerAnswer, answerMax: auditBytesMax}

const (
	readmeLines  = 14
	purposeShown = 220
	bigLines     = 1500
	hugeLines    = 4000
	entriesShown = 3

	entryUsual, entryRoom = 200, 1300 // see searchProbe
	testsUsual            = 200       // up to this many files, all tests are listed

	testsExpected = 5 // source files from which on a tree without tests is a finding
)

// entryRules say how a program starts, by extension.
var entryRules = []struct {
	exts    []string
	pattern string
}{
	{[]string{".go"}, `^func main\(\)`},
	{[]string{".py"}, `^if __name__ == ["']__main__["']`},
	{[]string{".rs"}, `^(pub )?(async )?fn main\(`},
	{[]string{".java", ".kt", ".scala", ".groovy"}, `public static void main\(|^fun main\(|extends App\b`},
	{[]string{".c", ".cc", ".cpp", ".cxx"}, `^(int|void)\s+main\s*\(`},
	{[]string{".cs"}, `static (async )?(void|int|Task) Main\(`},
	{[]string{".js", ".mjs", ".cjs", ".ts"}, `^#!/usr/bin/env node|\.listen\((\d|port|PORT|process\.env)`},
	{[]string{".rb"}, `^if __FILE__ == \$`},
	{[]string{".swift"}, `^@main\b`},
	{[]string{".dart"}, `^(void )?main\(`},
}

// entryProbe looks for the lines where programs start.
func entryProbe(h hints) (searchProbe, bool) {
	exts := h.Exts
	var patterns, used []string
	for _, r := range entryRules {
		hit := false
		for _, e := range exts {
			if slices.Contains(r.exts, e) {
				used, hit = append(used, e), true
			}
		}
		if hit {
			patterns = append(patterns, r.pattern)
		}
	}
	if len(used) == 0 {
		return searchProbe{}, false
	}
	return searchProbe{firstParts: h.Files / entryUsual, resultBytesMax: entryRoom, searchPart: func(k int) wantedCall {
		return wantedCall{name: toolGrep, label: "entry points", args: map[string]any{"pattern": strings.Join(patterns, "|"), "glob": partGlob(used, nil, k)}}
	}}, true
}

// testGlobs match test files by the conventions of each language.
var testGlobs = map[string]string{
	".go": "*_test.go", ".py": "{test_*,*_test}.py", ".js": "*{.,-}{test,spec}.js", ".mjs": "*.{test,spec}.mjs", ".cjs": "*.{test,spec}.cjs",
	".jsx": "*.{test,spec}.jsx", ".ts": "*.{test,spec}.ts", ".tsx": "*.{test,spec}.tsx", ".java": "*{Test,Tests,IT}.java", ".kt": "*Test.kt",
	".scala": "*{Spec,Test}.scala", ".cs": "*{Test,Tests}.cs", ".rb": "*_{spec,test}.rb", ".php": "*Test.php", ".ex": "*_test.exs",
	".swift": "*Tests.swift", ".dart": "*_test.dart",
}

// askTests lists test files; in a large tree, those of one part in k.
func askTests(h hints) (w wantedCall, k int, ok bool) {
	exts := h.Exts
	var alts, ends []string
	for _, e := range exts {
		if g, ok := testGlobs[e]; ok {
			alts, ends = append(alts, "**/"+g), append(ends, e[1:])
		}
	}
	if len(alts) == 0 {
		return wantedCall{}, 0, false
	}
	if !slices.Equal(ends, []string{"go"}) {
		alts = append(alts, "**/{test,tests,spec,__tests__}/**/*.{"+strings.Join(ends, ",")+"}")
	}
	k = powerOf2(h.Files / testsUsual)
	pattern := inPart("{"+strings.Join(alts, ",")+"}", k)
	return wantedCall{name: toolGlob, args: map[string]any{"pattern": pattern}, label: "test files"}, k, true
}

func askReadme(root []string) (wantedCall, bool) {
	for _, name := range root {
		if strings.HasPrefix(strings.ToLower(name), "readme") {
			return wantedCall{name: toolRead, args: map[string]any{"path": name, "limit": readmeLines}, label: name}, true
		}
	}
	return wantedCall{}, false
}

func cartographerWants(t *conversation) []wantedCall {
	var wants []wantedCall
	if t.hints.Files == 0 { // the caller gave no hints
		wants = append(wants, lookTree)
		all, _ := t.resultOf(lookTree)
		t.hints = directoryProfile{tree: parseGlob(all)}.childHints()
		if t.hints.Files == 0 {
			return wants
		}
	}
	if w, ok := askReadme(t.hints.Root); ok {
		wants = append(wants, w)
	}
	if p, ok := entryProbe(t.hints); ok {
		wants = append(wants, p.run(t).wants...)
	}
	if w, _, ok := askTests(t.hints); ok {
		wants = append(wants, w)
	}
	if w, ok := askLicense(t.hints.Root); ok {
		wants = append(wants, w)
	}
	if p, _, ok := apiProbe(t.hints); ok {
		wants = append(wants, p.run(t).wants...)
	}
	for _, p := range t.hints.Largest {
		wants = append(wants, askHead(p))
	}
	return wants
}

func cartographerAnswer(t *conversation) agentAnswer {
	a := agentAnswer{Summary: "cartographer: " + formatCount(t.hints.Files, "file")}
	if w, ok := askReadme(t.hints.Root); ok {
		text, _ := t.resultOf(w)
		if s := readmePurpose(parseRead("", text)); s != "" {
			a.addFact(factPurpose, "%s", s)
		}
	}
	var first fileLine
	if p, ok := entryProbe(t.hints); ok {
		first = reportEntryPoints(p.run(t).lastResult, &a)
	}
	reportBigFiles(t, &a)
	reportPublicAPI(t, &a)
	reportLicense(t, &a)
	reportLargestFiles(t, &a)
	reportTestCount(t, first, &a)
	reportAbsentFiles(t.hints.Root, &a)
	return a
}

var (
	underline = lazyregexp.New(`^(=+|-+)\s*$`)

	markup   = lazyregexp.New(`<[^>]*>|!?\[!?\[[^\]]*\]\([^)]*\)\]\([^)]*\)|!\[[^\]]*\]\([^)]*\)|!\[[^\]]*\](\[[^\]]*\])?|\[!\[[^\n]*`)
	linkText = lazyregexp.New(`\[([^\]]*)\]\([^)]*\)`)
)

// readmePurpose is the title and the first sentence of a README.
func readmePurpose(p fileExcerpt) string {
	var parts []string // the title, then the first paragraph
	paragraph := ""
	for _, l := range p.lines {
		text := markup.ReplaceAllString(l.text, "")
		text = linkText.ReplaceAllString(text, "$1")
		text = strings.NewReplacer("**", "", "__", "", "`", "").Replace(text)
		text = strings.Trim(strings.TrimLeft(text, "# >*=-"), " \t*_`=-|")
		plain := len(text) >= 3 && !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "<")
		switch {
		case plain && (len(parts) == 0 && strings.HasPrefix(l.text, "#")):
			parts = append(parts, text)
		case plain && strings.HasPrefix(l.text, "#"): // the next chapter
			if paragraph != "" {
				return cutAtSentence(strings.Join(append(parts, strings.TrimSpace(paragraph)), " — "))
			}
		case underline.MatchString(l.text) && len(parts) == 0 && paragraph != "":
			parts, paragraph = append(parts, strings.TrimSpace(paragraph)), ""
		case plain:
			paragraph += " " + text
		case paragraph != "" && text == "":
			return cutAtSentence(strings.Join(append(parts, strings.TrimSpace(paragraph)), " — "))
		}
	}
	return cutAtSentence(strings.Join(append(parts, strings.TrimSpace(paragraph)), " — "))
}

// cutAtSentence cuts a text after a whole sentence, if one ends in time.
func cutAtSentence(text string) string {
	cut := clip.Marked(strings.Trim(text, " —"), purposeShown, "…")
	if i := strings.LastIndex(cut, ". "); i > purposeShown/3 {
		return cut[:i+1]
	}
	return cut
}

func reportEntryPoints(s grepResult, a *agentAnswer) fileLine {
	var own1, rest []fileLine
	for _, h := range s.hits {
		if comment.MatchString(h.text) && !strings.HasPrefix(h.text, "#!") {
			continue
		}
		switch originOf(h.path) {
		case ownFile:
			own1 = append(own1, h)
		case supportingFile:
			rest = append(rest, h)
		}
	}
	slices.SortStableFunc(own1, func(x, y fileLine) int { return strings.Count(x.path, "/") - strings.Count(y.path, "/") })
	f := finding{Kind: kindEntry, Severity: info}
	var shown []string
	for i, h := range own1 {
		if i == entriesShown {
			shown = append(shown, fmt.Sprintf("%d more", len(own1)-i))
			break
		}
		shown = append(shown, fmt.Sprintf("%s:%d", h.path, h.line))
		if isQuotable(h.text) {
			f.Evidence = append(f.Evidence, h.asEvidence())
		}
	}
	if len(shown) > 0 {
		f.Title = "It starts in " + strings.Join(shown, ", ")
		a.addFinding(f)
		return own1[0]
	}
	if len(rest) > 0 {
		a.addFact(factEntry, "none of its own (%s in tests and examples): a library", formatCount(len(rest), "program"))
		return rest[0]
	}
	return fileLine{}
}

var generatedLine = lazyregexp.New(`(?i)(file|code)?\s*(auto-?)?generated\b|DO NOT EDIT`)

func reportBigFiles(t *conversation, a *agentAnswer) {
	f := finding{Kind: kindBigFile, Severity: low}
	var names []string
	generated := 0
	for _, p := range t.hints.Largest {
		page := parseRead(p, firstResult(t, askHead(p)))
		if len(page.lines) > 0 && generatedLine.MatchString(page.lines[0].text) {
			generated++
			continue
		}
		line, ok := firstQuotable(page)
		if !ok || page.total < bigLines || len(names) == repeatsMax {
			continue
		}
		if page.total >= hugeLines {
			f.Severity = medium
		}
		names = append(names, fmt.Sprintf("%s (%s lines)", p, formatThousands(int64(page.total))))
		f.Evidence = append(f.Evidence, line.asEvidence())
	}
	if generated > 0 {
		a.addLimit("%d of the %d largest source files set aside: their first line says generated", generated, len(t.hints.Largest))
	}
	f.Title = "Very long: " + strings.Join(names, ", ")
	a.addFinding(f)
}

func reportTestCount(t *conversation, first fileLine, a *agentAnswer) {
	w, k, ok := askTests(t.hints)
	if !ok {
		return
	}
	text, ok := t.resultOf(w)
	tests := parseGlob(text)
	if !ok || !tests.complete {
		return
	}
	if k > 1 && tests.files == 0 {
		return // those of other names may be there
	}
	if k > 1 {
		a.addFact(factTests, "%s by name, estimated from one name in %d", formatEstimate(tests.files, k), k)
		return
	}
	if tests.files > 0 {
		a.addFact(factTests, "%s by name (%s)", formatCount(tests.files, "file"), formatSize(tests.bytes))
		return
	}
	for _, p := range t.hints.Largest {
		if line := parseRead(p, firstResult(t, askHead(p))).lines; first.path == "" && len(line) > 0 {
			first = line[0]
		}
	}
	// If the main language has no naming convention for tests, their absence shows nothing.
	_, custom := testGlobs[t.hints.Exts[0]]
	if custom && t.hints.Files >= testsExpected && isQuotable(first.text) {
		a.addFinding(finding{Kind: kindUntested, Severity: medium, Title: "No file is named like a test",
			Detail: "a change here is checked by nobody before users do, unless tests hide under other names", Evidence: []evidence{first.asEvidence()}})
	}
}

func firstResult(t *conversation, w wantedCall) string {
	text, _ := t.resultOf(w)
	return text
}

// reportAbsentFiles names files that readers of a repository expect in its top directory and do not
// find.
func reportAbsentFiles(root []string, a *agentAnswer) {
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(root, func(n string) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(strings.ToLower(path.Base(n)), p) })
		})
	}
	var missing []string
	if !has("readme") {
		missing = append(missing, "README")
	}
	if !has("license", "licence", "copying") {
		missing = append(missing, "license")
	}
	if !has(".github", ".gitlab-ci", ".travis", ".circleci", "jenkinsfile", "azure-pipelines") {
		missing = append(missing, "CI configuration")
	}
	if len(root) > 0 && len(missing) > 0 {
		a.addFact(factAbsent, "%s", strings.Join(missing, ", "))
	}
}
