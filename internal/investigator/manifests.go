package investigator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Readers of manifests, a line at a time: enough to name what a line declares,
// never a full parser.

var (
	goRequire = lazyregexp.New(`^\s*(?:require\s+)?([\w.-]+\.[\w-]+(?:/[\w.~-]+)*)\s+(v\S+)(\s*//\s*indirect)?`)
	goPseudo  = lazyregexp.New(`-(0\.)?\d{14}-[0-9a-f]{12}`)
	goReplace = lazyregexp.New(`=>\s*(\S+)`)
	goVersion = lazyregexp.New(`^go\s+(\d+\.\d+\S*)`)
)

func readGoMod(m manifest, a *agentAnswer) {
	var deps []dependency
	var pseudo, local []fileLine
	indirect, version, inReplace := 0, "", false
	for _, l := range m.lines {
		text := strings.TrimSpace(l.text)
		if v := goVersion.FindStringSubmatch(text); v != nil {
			version = v[1]
		}
		inReplace = strings.HasPrefix(text, "replace") || inReplace && text != ")"
		if r := goReplace.FindStringSubmatch(text); inReplace && r != nil {
			if strings.HasPrefix(r[1], ".") || strings.HasPrefix(r[1], "/") {
				local = append(local, l)
			}
			continue
		}
		d := goRequire.FindStringSubmatch(l.text)
		if d == nil || strings.HasPrefix(text, "exclude") || strings.HasPrefix(text, "module") {
			continue
		}
		dep := dependency{fileLine: l, name: d[1], version: d[2], indirect: d[3] != ""}
		if dep.indirect {
			indirect++
			continue
		}
		deps = append(deps, dep)
		if goPseudo.MatchString(dep.version) {
			pseudo = append(pseudo, l)
		}
	}
	a.addFact(factManifest, "`%s`: Go %s; %d direct, %d indirect", m.path, orUnknown(version), len(deps), indirect)
	addDependencyFinding(a, pseudo, low, "Untagged commit instead of a release in %s",
		"pinned, but to a state that nobody released")
	addDependencyFinding(a, local, medium, "`replace` with a directory of this machine in %s", "builds only where that directory is")
	reportAbandoned(a, deps)
	if len(deps) > 0 {
		reportManyDependencies(a, m, len(deps), deps[0].fileLine)
		if !m.hasLockFile("go.sum") {
			addDependencyFinding(a, []fileLine{deps[0].fileLine}, medium, "No go.sum beside "+m.path+" (%s)",
				"what is downloaded is not checked")
		}
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "(version not stated)"
	}
	return s
}

var (
	pyName   = lazyregexp.New(`^\s*"?([A-Za-z0-9][\w.-]*)(\[[^\]]*\])?\s*([=<>!~]=?[^"#;]*)?`)
	pyOption = lazyregexp.New(`^\s*(-|#|$|git\+|https?:)`)
)

// sideManifest is for people who work on the project, not for the product.
var sideManifest = lazyregexp.New(`(?i)dev|test|doc|lint|ci|example`)

func readRequirements(m manifest, a *agentAnswer) {
	var deps []dependency
	var free, elsewhere []fileLine
	for _, l := range m.lines {
		text, _, _ := strings.Cut(l.text, " #")
		if strings.Contains(text, "git+") || strings.Contains(text, "http://") || strings.Contains(text, " @ ") {
			elsewhere = append(elsewhere, l)
			continue
		}
		text, _, _ = strings.Cut(text, " --") // hashes and options of this requirement
		p := pyName.FindStringSubmatch(text)
		if pyOption.MatchString(text) || p == nil {
			continue
		}
		deps = append(deps, dependency{fileLine: l, name: strings.ToLower(p[1]), version: p[3]})
		if !strings.HasPrefix(p[3], "==") {
			free = append(free, l)
		}
	}
	a.addFact(factManifest, "`%s`: %d, %d of them pinned with ==", m.path, len(deps), len(deps)-len(free))
	sev := low
	if len(free)*2 > len(deps) && !sideManifest.MatchString(m.path) {
		sev = medium
	}
	addDependencyFinding(a, free, sev, "Version not pinned in %s of "+m.path, "")
	addDependencyFinding(a, elsewhere, medium, "Dependency from outside the registry in %s",
		"the registry neither keeps nor checks it")
	reportAbandoned(a, deps)
}

var pomVersion = lazyregexp.New(`<version>\s*(LATEST|RELEASE|[\[(]|[^\s<]*-SNAPSHOT)`)

func readPom(m manifest, a *agentAnswer) {
	count := 0
	var free []fileLine
	for i, l := range m.lines {
		before := count
		count += strings.Count(l.text, "<dependency>")
		if before == 0 && count > 0 { // the project's own version is no dependency's
			_, l.text, _ = strings.Cut(l.text, "<dependency>")
		}
		if count > 0 && pomVersion.MatchString(l.text) {
			free = append(free, m.lines[i])
		}
	}
	a.addFact(factManifest, "`%s`: %d dependencies in the lines read", m.path, count)
	addDependencyFinding(a, free, medium, "Version that changes under the build in %s", "")
}

var gradleDep = lazyregexp.New(`(?:^|[{;])\s*(api|implementation|compile|compileOnly|runtimeOnly|testImplementation|kapt)\b[ (]+["'][^"']+:([^"':]*)["']`)

func readGradle(m manifest, a *agentAnswer) {
	count := 0
	var free []fileLine
	for _, l := range m.lines {
		for _, d := range gradleDep.FindAllStringSubmatch(l.text, -1) {
			count++
			if strings.HasSuffix(d[2], "+") || strings.HasPrefix(d[2], "latest") || strings.HasSuffix(d[2], "-SNAPSHOT") {
				free = append(free, l)
			}
		}
	}
	a.addFact(factManifest, "`%s`: %d dependencies", m.path, count)
	addDependencyFinding(a, free, medium, "Version that changes under the build in %s", "")
}

var gemLine = lazyregexp.New(`(?:^|;)\s*gem\s+["']([\w-]+)["']([^;]*)`)

func readGemfile(m manifest, a *agentAnswer) {
	var deps []dependency
	var elsewhere []fileLine
	for _, l := range m.lines {
		for _, g := range gemLine.FindAllStringSubmatch(l.text, -1) {
			deps = append(deps, dependency{fileLine: l, name: g[1], version: g[2]})
			if slices.ContainsFunc([]string{"git:", "github:", ":git", "branch:"}, func(s string) bool { return strings.Contains(g[2], s) }) {
				elsewhere = append(elsewhere, l)
			}
		}
	}
	a.addFact(factManifest, "`%s`: %d gems", m.path, len(deps))
	addDependencyFinding(a, elsewhere, low, "Dependency from git in %s", "")
	if len(deps) > 0 && !m.hasLockFile("Gemfile.lock") {
		a.addFinding(finding{Kind: kindDependency, Severity: low, Title: fmt.Sprintf("No Gemfile.lock beside %s", m.path), Evidence: []evidence{deps[0].asEvidence()}})
	}
}
