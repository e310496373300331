package scout

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// cartographer maps the source: what it is for, where it starts, how big its
// files are, whether it has tests.
var cartographer = job{name: "cartographer", wants: cartographerWants, answer: cartographerAnswer}

const (
	readmeLines   = 14
	purposeShown  = 160
	bigLines      = 1500
	hugeLines     = 4000
	entriesShown  = 4
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

func askEntries(exts []string) (want, bool) {
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
		return want{}, false
	}
	return want{name: toolGrep, args: map[string]any{"pattern": strings.Join(patterns, "|"), "glob": sourceGlob(used, nil)}, label: "entry points"}, true
}

// testGlobs find test files by the customs of each language.
var testGlobs = map[string]string{
	".go": "*_test.go", ".py": "{test_*,*_test}.py", ".js": "*{.,-}{test,spec}.js", ".mjs": "*.{test,spec}.mjs", ".cjs": "*.{test,spec}.cjs",
	".jsx": "*.{test,spec}.jsx", ".ts": "*.{test,spec}.ts", ".tsx": "*.{test,spec}.tsx", ".java": "*{Test,Tests,IT}.java", ".kt": "*Test.kt",
	".scala": "*{Spec,Test}.scala", ".cs": "*{Test,Tests}.cs", ".rb": "*_{spec,test}.rb", ".php": "*Test.php", ".ex": "*_test.exs",
	".swift": "*Tests.swift", ".dart": "*_test.dart",
}

func askTests(exts []string) (want, bool) {
	var alts []string
	for _, e := range exts {
		if g, ok := testGlobs[e]; ok {
			alts = append(alts, g)
		}
	}
	if len(alts) == 0 {
		return want{}, false
	}
	pattern := "**/{" + strings.Join(alts, ",") + "}"
	return want{name: toolGlob, args: map[string]any{"pattern": pattern}, label: "test files"}, true
}

func askFirstLine(p string) want {
	return want{name: toolRead, args: map[string]any{"path": p, "limit": 1}, label: "size of " + p}
}

func askReadme(root []string) (want, bool) {
	for _, name := range root {
		if strings.HasPrefix(strings.ToLower(name), "readme") {
			return want{name: toolRead, args: map[string]any{"path": name, "limit": readmeLines}, label: name}, true
		}
	}
	return want{}, false
}

func cartographerWants(t *talk) []want {
	var wants []want
	if t.hints.Files == 0 { // asked by somebody who gave no hints
		wants = append(wants, lookTree)
		all, _ := t.result(lookTree)
		t.hints = place{tree: parseGlob(all)}.hints()
		if t.hints.Files == 0 {
			return wants
		}
	}
	if w, ok := askReadme(t.hints.Root); ok {
		wants = append(wants, w)
	}
	if w, ok := askEntries(t.hints.Exts); ok {
		wants = append(wants, w)
	}
	if w, ok := askTests(t.hints.Exts); ok {
		wants = append(wants, w)
	}
	for _, p := range t.hints.Largest {
		wants = append(wants, askFirstLine(p))
	}
	return wants
}

func cartographerAnswer(t *talk) answer {
	a := answer{Summary: "cartographer: " + plural(t.hints.Files, "file")}
	if w, ok := askReadme(t.hints.Root); ok {
		text, _ := t.result(w)
		if s := purpose(parseRead("", text)); s != "" {
			a.fact(factPurpose, "%s", s)
		}
	}
	var first hit
	if w, ok := askEntries(t.hints.Exts); ok {
		text, _ := t.result(w)
		first = entries(parseGrep(text), &a)
	}
	bigFiles(t, &a)
	testCount(t, first, &a)
	absent(t.hints.Root, &a)
	return a
}

var (
	markup   = regexp.MustCompile(`<[^>]*>|!?\[!?\[[^\]]*\]\([^)]*\)\]\([^)]*\)|!\[[^\]]*\]\([^)]*\)|!\[[^\]]*\](\[[^\]]*\])?|\[!\[[^\n]*`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// purpose is the title and the first sentence of a README.
func purpose(p page) string {
	var words []string
	for _, l := range p.lines {
		text := markup.ReplaceAllString(l.text, "")
		text = linkText.ReplaceAllString(text, "$1")
		text = strings.Trim(strings.TrimLeft(text, "# >*=-"), " \t*_`=-|")
		if len(text) < 3 || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "<") {
			continue
		}
		words = append(words, text)
		if len(words) == 2 || len(strings.Join(words, "")) > purposeShown {
			break
		}
	}
	return shorten(strings.Join(words, " — "), purposeShown)
}

func entries(s search, a *answer) hit {
	var own1, rest []hit
	for _, h := range s.hits {
		switch standingOf(h.path) {
		case own:
			own1 = append(own1, h)
		case aside:
			rest = append(rest, h)
		}
	}
	slices.SortStableFunc(own1, func(x, y hit) int { return strings.Count(x.path, "/") - strings.Count(y.path, "/") })
	var shown []string
	for i, h := range own1 {
		if i == entriesShown {
			shown = append(shown, fmt.Sprintf("%d more", len(own1)-i))
			break
		}
		shown = append(shown, fmt.Sprintf("`%s:%d`", h.path, h.line))
	}
	if len(shown) > 0 {
		a.fact(factEntry, "%s", strings.Join(shown, ", "))
		return own1[0]
	}
	if len(rest) > 0 {
		a.fact(factEntry, "none of its own (%s in tests and examples): a library", plural(len(rest), "program"))
		return rest[0]
	}
	return hit{}
}

func bigFiles(t *talk, a *answer) {
	for _, p := range t.hints.Largest {
		text, ok := t.result(askFirstLine(p))
		page := parseRead(p, text)
		if !ok || len(page.lines) == 0 || page.total < bigLines || !quotable(page.lines[0].text) {
			continue
		}
		sev := low
		if page.total >= hugeLines {
			sev = medium
		}
		a.add(finding{Kind: kindBigFile, Severity: sev, Title: fmt.Sprintf("%s has %s lines", p, thousands(int64(page.total))),
			Evidence: []evidence{page.lines[0].evidence()}})
	}
}

func testCount(t *talk, first hit, a *answer) {
	w, ok := askTests(t.hints.Exts)
	if !ok {
		return
	}
	text, ok := t.result(w)
	tests := parseGlob(text)
	if !ok || !tests.whole {
		return
	}
	if tests.files > 0 {
		a.fact(factTests, "%s by name (%s)", plural(tests.files, "file"), size(tests.bytes))
		return
	}
	for _, p := range t.hints.Largest {
		if line := parseRead(p, firstResult(t, askFirstLine(p))).lines; first.path == "" && len(line) > 0 {
			first = line[0]
		}
	}
	if t.hints.Files >= testsExpected && quotable(first.text) {
		a.add(finding{Kind: kindUntested, Severity: medium, Title: "No file is named like a test",
			Detail: "a change here is checked by nobody before users do, unless tests hide under other names", Evidence: []evidence{first.evidence()}})
	}
}

func firstResult(t *talk, w want) string {
	text, _ := t.result(w)
	return text
}

// absent names what readers of a repository expect in its top directory.
func absent(root []string, a *answer) {
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
		a.fact(factAbsent, "%s", strings.Join(missing, ", "))
	}
}
