package investigator

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// What a newcomer looks for first, as findings with the line that shows it.

const (
	apiRoom    = 1300 // bytes, see searchProbe
	apiUsual   = 40   // files searched at once
	apiShown   = 5
	headLines  = 3 // read of a file to find one that can be quoted
	buildShown = 3
	// declaredShown is how much of a declaration a title shows.
	declaredShown = 120
)

// apiRules match declarations that other code can use, by extension.
var apiRules = []struct {
	exts    []string
	pattern string
	name    *lazyregexp.Regexp
}{
	{goExt, `^type [A-Z]\w* (?:interface|struct)|^func New\w*\(`, lazyregexp.New(`^(?:type|func) (\w+)`)},
	{pyExt, `^class [A-Za-z]\w*|^__all__`, lazyregexp.New(`^class (\w+)|^(__all__)`)},
	{jsExt, `^(?:exports\s*=\s*)?module\.exports\b|^exports\.\w+ ?=|^export (?:default|class|async function|function|const|interface|type) `,
		lazyregexp.New(`^exports\.(\w+)|^export (?:default )?(?:class|async function|function|const|interface|type) (\w+)|^export (default)|(module\.exports)`)},
	{javaExt, `^public (?:\w+ )*(?:class|interface|enum|record) \w+|^(?:open |data |sealed )?(?:class|interface|object) [A-Z]`, lazyregexp.New(`(?:class|interface|enum|record|object) (\w+)`)},
	{rustExt, `^pub (?:struct|trait|enum|mod|fn) \w+`, lazyregexp.New(`^pub \w+ (\w+)`)},
	{csExt, `^\s*public (?:\w+ )*(?:class|interface|struct|record) \w+`, lazyregexp.New(`(?:class|interface|struct|record) (\w+)`)},
	{rubyExt, `^\s{0,2}(?:class|module) [A-Z]\w*`, lazyregexp.New(`(?:class|module) (\w+)`)},
	{phpExt, `^(?:abstract |final )?(?:class|interface|trait) \w+`, lazyregexp.New(`(?:class|interface|trait) (\w+)`)},
	{cExt, `^(?:typedef )?(?:struct|class|enum) \w+`, lazyregexp.New(`(?:struct|class|enum) (\w+)`)},
}

// apiProbe looks for the names of the main language; ok is false when scout has
// no rule for it.
func apiProbe(h hints) (p searchProbe, name *lazyregexp.Regexp, ok bool) {
	if len(h.Exts) == 0 {
		return searchProbe{}, nil, false
	}
	for _, r := range apiRules {
		if !slices.Contains(r.exts, h.Exts[0]) {
			continue
		}
		return searchProbe{firstParts: h.Files / apiUsual, resultBytesMax: apiRoom, searchPart: func(k int) wantedCall {
			return wantedCall{name: toolGrep, label: "public names", quiet: true, args: map[string]any{"pattern": r.pattern, "glob": partGlob(h.Exts[:1], nil, k)}}
		}}, r.name, true
	}
	return searchProbe{}, nil, false
}

func reportPublicAPI(t *conversation, a *agentAnswer) {
	p, name, ok := apiProbe(t.hints)
	if !ok {
		return
	}
	found := p.run(t)
	f := finding{Kind: kindAPI, Severity: info}
	var names []string
	total := 0
	for _, h := range found.lastResult.hits {
		if originOf(h.path) != ownFile || !isQuotable(h.text) {
			continue
		}
		total++
		word := strings.Join(name.FindStringSubmatch(h.text)[min(1, len(name.FindStringSubmatch(h.text))):], "")
		fresh := !slices.Contains(names, word)
		if fresh && word != "" && len(names) < apiShown {
			names = append(names, word)
		}
		if fresh && len(f.Evidence) < repeatsMax {
			f.Evidence = append(f.Evidence, h.asEvidence())
		}
	}
	f.Title = fmt.Sprintf("Public names, %s: %s", formatEstimate(total, found.parts), strings.Join(names, ", "))
	if total > len(names) {
		f.Title += ", …"
	}
	a.addFinding(f)
}

func askHead(p string) wantedCall {
	return wantedCall{name: toolRead, args: map[string]any{"path": p, "limit": headLines}, label: "beginning of " + p}
}

func askLicense(root []string) (wantedCall, bool) {
	for _, n := range root {
		lower := strings.ToLower(n)
		if strings.HasPrefix(lower, "license") || strings.HasPrefix(lower, "licence") || strings.HasPrefix(lower, "copying") {
			w := askHead(n)
			w.quiet = true // it may be a directory
			return w, true
		}
	}
	return wantedCall{}, false
}

func reportLicense(t *conversation, a *agentAnswer) {
	w, ok := askLicense(t.hints.Root)
	if !ok {
		return
	}
	name := w.args["path"].(string)
	if l, ok := firstQuotable(parseRead(name, firstResult(t, w))); ok {
		a.addFinding(finding{Kind: kindLicense, Severity: info, Title: "License: " + clip.Marked(licenseName(l.text), peekShown, "…"), Evidence: []evidence{l.asEvidence()}})
	}
}

// licenseName is the first line of a license without its decoration, such as parentheses around all of it.
func licenseName(line string) string {
	name := strings.Trim(line, " \t#*=")
	if inner, ok := strings.CutPrefix(name, "("); ok && strings.Index(inner, ")") == len(inner)-1 {
		name = strings.TrimSuffix(inner, ")")
	}
	return name
}

func firstQuotable(p fileExcerpt) (fileLine, bool) {
	for _, l := range p.lines {
		if strings.TrimSpace(l.text) != "" && isQuotable(l.text) {
			return l, true
		}
	}
	return fileLine{}, false
}

// reportLargestFiles adds the longest source files, unless one is so long that it is a finding already.
func reportLargestFiles(t *conversation, a *agentAnswer) {
	if slices.ContainsFunc(a.Findings, func(f finding) bool { return f.Kind == kindBigFile }) {
		return
	}
	f := finding{Kind: kindSize, Severity: info}
	var names []string
	for _, p := range t.hints.Largest {
		page := parseRead(p, firstResult(t, askHead(p)))
		if l, ok := firstQuotable(page); ok && len(names) < repeatsMax {
			names = append(names, fmt.Sprintf("%s (%s)", p, formatCount(page.total, "line")))
			f.Evidence = append(f.Evidence, l.asEvidence())
		}
	}
	f.Title = "The largest source files by bytes: " + strings.Join(names, ", ")
	if len(names) == 1 {
		f.Title = "The largest source file: " + names[0]
	}
	a.addFinding(f)
}

// declared are lines of manifests that say how a project is used, by kind.
var declared = []struct {
	kind, title string
	files       []string
	pattern     *lazyregexp.Regexp
}{
	{kindEntry, "Where users of it begin", []string{"package.json"}, lazyregexp.New(`^\s*"(main|module|exports|bin|browser|types)"\s*:`)},
	{kindEntry, "Where users of it begin", []string{"pyproject.toml"}, lazyregexp.New(`^\[(project\.scripts|tool\.poetry\.scripts|project\.entry-points.*)\]`)},
	{kindEntry, "Where users of it begin", []string{"Cargo.toml"}, lazyregexp.New(`^\[(lib|\[bin\])\]`)},
	{kindEntry, "The module that others import", []string{"go.mod"}, lazyregexp.New(`^module \S`)},
	{kindEntry, "The artifact that others depend on", []string{"pom.xml"}, lazyregexp.New(`^(\s{2}|\s{4}|\t)<artifactId>`)},
	{kindToolchain, "Needs", []string{"go.mod"}, lazyregexp.New(`^(go|toolchain) \S`)},
	{kindToolchain, "Needs", []string{"package.json"}, lazyregexp.New(`^\s*"(node|npm|packageManager)"\s*:\s*"[^"]*\d`)},
	{kindToolchain, "Needs", []string{"pyproject.toml"}, lazyregexp.New(`^(requires-python|python|build-backend)\s*=`)},
	{kindToolchain, "Needs", []string{"Cargo.toml"}, lazyregexp.New(`^(edition|rust-version)\s*=`)},
	{kindToolchain, "Needs", []string{"pom.xml"}, lazyregexp.New(`<(maven\.compiler\.\w+|java\.version|source|release)>\d`)},
	{kindToolchain, "Needs", []string{"build.gradle", "build.gradle.kts"}, lazyregexp.New(`(source|target)Compatibility|languageVersion|jvmTarget`)},
	{kindToolchain, "Needs", []string{"composer.json"}, lazyregexp.New(`^\s*"php"\s*:`)},
	{kindToolchain, "Needs", []string{"Gemfile"}, lazyregexp.New(`^ruby\s`)},
	{kindLicense, "License", []string{"package.json", "composer.json"}, lazyregexp.New(`^\s*"license"\s*:\s*"`)},
	{kindLicense, "License", []string{"pyproject.toml", "Cargo.toml"}, lazyregexp.New(`^license\s*=`)},
	{kindLicense, "License", []string{"pom.xml"}, lazyregexp.New(`(?i)<name>[^<]*(license|MIT|apache|GPL|BSD)[^<]*</name>`)},
}

// reportDeclarations reports what a manifest declares about the project itself.
func reportDeclarations(m manifest, a *agentAnswer) {
	said := map[string]int{}
	for _, d := range declared {
		if !slices.Contains(d.files, path.Base(m.path)) {
			continue
		}
		f := finding{Kind: d.kind, Severity: info}
		var words []string
		for _, l := range m.declarations() {
			if d.pattern.MatchString(l.text) && isCitable(l.at.text) && len(words) < buildShown {
				word := clip.Marked(strings.Trim(strings.TrimSpace(l.text), ",{ "), declaredShown, "…")
				if slices.Contains(words, word) {
					continue
				}
				words = append(words, word)
				if shown := l.at.asEvidence(); !slices.Contains(f.Evidence, shown) {
					f.Evidence = append(f.Evidence, shown)
				}
			}
		}
		f.Title = d.title + " (" + m.path + "): " + strings.Join(words, ", ")
		if len(words) > 0 && said[d.kind] == 0 {
			said[d.kind]++
			a.addFinding(f)
		}
	}
}
