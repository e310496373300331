package investigator

import (
	"fmt"
	"regexp"
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
	jsonSection = lazyregexp.New(`^\s*"(dependencies|devDependencies|peerDependencies|optionalDependencies|require|require-dev)"\s*:\s*\{`)
	jsonPair    = lazyregexp.New(`^\s*"([@\w][\w./-]*)"\s*:\s*"([^"]*)"`)
	loose       = lazyregexp.New(`^(\*|latest|x|next|>=?\s*[\d.]+|dev-\w+|)$`)
	remote      = lazyregexp.New(`^(git|http|file:|github:|link:)|^[\w-]+/[\w.-]+(#|$)`)
	hookScript  = lazyregexp.New(`^\s*"(preinstall|install|postinstall)"\s*:`)
	isPrivate   = lazyregexp.New(`^\s*"private"\s*:\s*true`)
)

func readPackageJSON(m manifest, a *agentAnswer) {
	var deps []dependency
	var free, elsewhere, hooks, sections []fileLine
	section, private, dev, php := "", false, 0, strings.HasSuffix(m.path, "composer.json")
	for _, l := range m.lines {
		if s := jsonSection.FindStringSubmatch(l.text); s != nil {
			section = s[1]
			sections = append(sections, l)
			if strings.Contains(l.text, "}") {
				section = ""
			}
			continue
		}
		private = private || isPrivate.MatchString(l.text)
		if hookScript.MatchString(l.text) && section == "" {
			hooks = append(hooks, l)
		}
		if strings.HasPrefix(strings.TrimSpace(l.text), "}") {
			section = ""
		}
		p := jsonPair.FindStringSubmatch(l.text)
		if section == "" || p == nil || php && (p[1] == "php" || strings.HasPrefix(p[1], "ext-")) {
			continue
		}
		d := dependency{fileLine: l, name: p[1], version: p[2], dev: strings.Contains(strings.ToLower(section), "dev")}
		deps = append(deps, d)
		switch {
		case section == "peerDependencies":
		case loose.MatchString(d.version):
			free = append(free, l)
		case remote.MatchString(d.version):
			elsewhere = append(elsewhere, l)
		}
		if d.dev {
			dev++
		}
	}
	a.addFact(factManifest, "`%s`: %d for production, %d for development", m.path, len(deps)-dev, dev)
	addDependencyFinding(a, free, medium, "Any version accepted in %s", "")
	addDependencyFinding(a, elsewhere, medium, "Dependency from outside the registry in %s",
		"the registry neither keeps nor checks it")
	if len(hooks) > 0 {
		a.addFinding(finding{Kind: kindDependency, Severity: low, Title: "A script runs at install time", Detail: "whoever installs this runs it unasked",
			Evidence: []evidence{hooks[0].asEvidence()}})
	}
	reportAbandoned(a, deps)
	if len(deps) == 0 || len(sections) == 0 {
		return
	}
	reportManyDependencies(a, m, len(deps), sections[0])
	if !m.hasLockFile("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb", "bun.lock", "composer.lock") {
		sev, note := low, "usual for a published library, not for an application"
		if private {
			sev, note = medium, kindReasons[kindDependency]
		}
		a.addFinding(finding{Kind: kindDependency, Severity: sev, Title: "No lock file beside " + m.path, Detail: note, Evidence: []evidence{sections[0].asEvidence()}})
	}
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
		if strings.Contains(l.text, "git+") || strings.Contains(l.text, "http://") {
			elsewhere = append(elsewhere, l)
			continue
		}
		p := pyName.FindStringSubmatch(l.text)
		if pyOption.MatchString(l.text) || p == nil || strings.Contains(l.text, "--hash") {
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

func readPyproject(m manifest, a *agentAnswer) {
	var deps []dependency
	var free []fileLine
	in := false
	for _, l := range m.lines {
		text := strings.TrimSpace(l.text)
		switch {
		case strings.HasPrefix(text, "dependencies = [") || text == "[tool.poetry.dependencies]":
			in = !strings.HasSuffix(text, "]") || text == "[tool.poetry.dependencies]"
			continue
		case text == "]" || strings.HasPrefix(text, "["):
			in = false
		}
		p := pyName.FindStringSubmatch(strings.Trim(text, `"',`))
		if !in || p == nil || p[1] == "python" || strings.HasPrefix(text, "#") {
			continue
		}
		deps = append(deps, dependency{fileLine: l, name: strings.ToLower(p[1]), version: p[3]})
		if strings.TrimSpace(p[3]) == "" || strings.Contains(text, `"*"`) {
			free = append(free, l)
		}
	}
	a.addFact(factManifest, "`%s`: %d dependencies", m.path, len(deps))
	addDependencyFinding(a, free, low, "Any version accepted in %s of "+m.path, "")
	reportAbandoned(a, deps)
	if len(deps) > 0 && !m.hasLockFile("poetry.lock", "uv.lock", "Pipfile.lock", "requirements.txt", "pdm.lock") {
		a.addFinding(finding{Kind: kindDependency, Severity: low, Title: "No lock file beside " + m.path,
			Detail: "usual for a published library, not for an application", Evidence: []evidence{deps[0].asEvidence()}})
	}
}

var (
	cargoSection = lazyregexp.New(`^\[(?:workspace\.)?(?:target\..*\.)?(dependencies|dev-dependencies|build-dependencies)\]`)
	cargoPair    = lazyregexp.New(`^([\w-]+)\s*=\s*(.*)$`)
)

func readCargo(m manifest, a *agentAnswer) {
	var deps []dependency
	var free, elsewhere []fileLine
	section := false
	for _, l := range m.lines {
		if strings.HasPrefix(l.text, "[") {
			section = cargoSection.MatchString(l.text)
			continue
		}
		p := cargoPair.FindStringSubmatch(l.text)
		if !section || p == nil {
			continue
		}
		deps = append(deps, dependency{fileLine: l, name: p[1], version: p[2]})
		switch {
		case strings.Contains(p[2], `"*"`):
			free = append(free, l)
		case strings.Contains(p[2], "git ="):
			elsewhere = append(elsewhere, l)
		}
	}
	a.addFact(factManifest, "`%s`: %d dependencies", m.path, len(deps))
	addDependencyFinding(a, free, medium, "Any version accepted in %s", "")
	addDependencyFinding(a, elsewhere, low, "Dependency from git in %s", "")
	reportAbandoned(a, deps)
	if len(deps) > 0 && !m.hasLockFile("Cargo.lock") {
		a.addFinding(finding{Kind: kindDependency, Severity: low, Title: "No Cargo.lock beside " + m.path,
			Detail: "usual for a library, not for a program", Evidence: []evidence{deps[0].asEvidence()}})
	}
}

func readPom(m manifest, a *agentAnswer) {
	count := 0
	var free []fileLine
	for _, l := range m.lines {
		if strings.Contains(l.text, "<dependency>") {
			count++
		}
		if regexp.MustCompile(`<version>\s*(LATEST|RELEASE|[\[(]|\S*-SNAPSHOT)`).MatchString(l.text) && count > 0 {
			free = append(free, l)
		}
	}
	a.addFact(factManifest, "`%s`: %d dependencies in the lines read", m.path, count)
	addDependencyFinding(a, free, medium, "Version that changes under the build in %s", "")
}

var gradleDep = lazyregexp.New(`^\s*(api|implementation|compile|compileOnly|runtimeOnly|testImplementation|kapt)\b[ (]+["'][^"']+:([^"':]*)["']`)

func readGradle(m manifest, a *agentAnswer) {
	count := 0
	var free []fileLine
	for _, l := range m.lines {
		d := gradleDep.FindStringSubmatch(l.text)
		if d == nil {
			continue
		}
		count++
		if strings.HasSuffix(d[2], "+") || strings.HasPrefix(d[2], "latest") || strings.HasSuffix(d[2], "-SNAPSHOT") {
			free = append(free, l)
		}
	}
	a.addFact(factManifest, "`%s`: %d dependencies", m.path, count)
	addDependencyFinding(a, free, medium, "Version that changes under the build in %s", "")
}

var gemLine = lazyregexp.New(`^\s*gem\s+["']([\w-]+)["'](.*)$`)

func readGemfile(m manifest, a *agentAnswer) {
	var deps []dependency
	var elsewhere []fileLine
	for _, l := range m.lines {
		if g := gemLine.FindStringSubmatch(l.text); g != nil {
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
