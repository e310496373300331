package investigator

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
)

// placeKind is what the coordinator takes the directory for.
type placeKind string

const (
	placeUnseen placeKind = "unseen" // no look succeeded
	placeEmpty  placeKind = "empty"
	placeCode   placeKind = "code"
	placeLogs   placeKind = "logs"
	placeOther  placeKind = "other"
)

// place describes the directory after the first look.
type place struct {
	kind    placeKind
	git     bool
	entries []entry
	tree    tree
	logs    []string // largest first
	logSize int64    // bytes of all logs, as far as seen
	source  int      // files of code
}

var (
	lookTop  = want{name: toolList, args: map[string]any{"path": "."}, label: "the top directory"}
	lookTree = want{name: toolGlob, args: map[string]any{"pattern": "**"}, label: "the list of all files"}
)

const (
	logsMax    = 8 // log files that are named to children
	largestMax = 4
)

func readPlace(t *talk, reportName string) place {
	var p place
	list, listed := t.result(lookTop)
	if listed {
		p.entries, _ = parseList(list)
	}
	all, globbed := t.result(lookTree)
	if globbed {
		p.tree = parseGlob(all)
	}
	inTree := 0
	for _, e := range p.entries {
		p.git = p.git || e.name == ".git"
		if !ours(e.name, reportName) && e.name != ".git" {
			inTree++
		}
	}
	p.logs, p.logSize = findLogs(p, reportName)
	logBytes, sourceBytes := int64(0), int64(0)
	for _, e := range p.tree.exts {
		if languages[e.ext].code {
			p.source += e.files
			sourceBytes += e.bytes
		}
		if e.ext == ".log" {
			logBytes += e.bytes
		}
	}
	switch {
	case len(p.entries) == 0 && !p.tree.whole && !listed:
		p.kind = placeUnseen
	case inTree == 0 && p.tree.files == 0:
		p.kind = placeEmpty
	case len(p.logs) > 0 && (p.source == 0 || (logBytes > sourceBytes && p.source < len(p.logs))):
		p.kind = placeLogs
	case p.source > 0 || p.git:
		p.kind = placeCode
	default:
		p.kind = placeOther
	}
	return p
}

// findLogs lists log files, the largest first as far as their sizes are known.
func findLogs(p place, reportName string) (logs []string, total int64) {
	size := map[string]int64{}
	for _, s := range p.tree.largest {
		size[s.path] = s.size
	}
	var names []string
	for _, e := range p.entries {
		if !e.dir && !e.link {
			size[e.name] = e.size
			names = append(names, e.name)
		}
	}
	for _, s := range p.tree.largest {
		names = append(names, s.path)
	}
	names = append(names, p.tree.paths...)
	for _, n := range names {
		if isLog(n) && !ours(n, reportName) && !slices.Contains(logs, n) {
			logs = append(logs, n)
			total += size[n]
		}
	}
	slices.SortStableFunc(logs, func(a, b string) int { return int(size[b] - size[a]) })
	return logs[:min(len(logs), logsMax)], total
}

// tellingRoot are names in the top directory that are useful to children.
var tellingRoot = []string{"readme", "license", "licence", "copying", "changelog", "security", "contributing", "dockerfile", "makefile",
	".github", ".gitlab-ci.yml", ".travis.yml", ".circleci", "jenkinsfile", "azure-pipelines.yml", "main.", "setup.", "index."}

func (p place) hints() hints {
	h := hints{Exts: sourceExts(p.tree.exts), Files: p.tree.files}
	h.Exts = h.Exts[:min(len(h.Exts), extsMax)]
	for _, s := range p.tree.largest {
		if isSource(s.path) && standingOf(s.path) == own && len(h.Largest) < largestMax {
			h.Largest = append(h.Largest, s.path)
		}
	}
	for _, e := range p.entries {
		lower := strings.ToLower(e.name)
		if isManifest(e.name) || slices.ContainsFunc(tellingRoot, func(s string) bool { return strings.HasPrefix(lower, s) }) {
			h.Root = append(h.Root, e.name)
		}
	}
	h.Root = h.Root[:min(len(h.Root), rootMax)]
	return h
}

const (
	extsMax = 8
	rootMax = 24
)

// describe returns one sentence about the place.
func (p place) describe() string {
	what := map[placeKind]string{placeCode: "A source tree", placeLogs: "A folder of logs", placeOther: "A folder",
		placeEmpty: "An empty folder", placeUnseen: "A folder that could not be read"}[p.kind]
	if p.git && p.kind == placeCode {
		what = "A git repository"
	}
	if !p.tree.whole {
		return what + "."
	}
	if p.kind == placeEmpty {
		return what + "."
	}
	s := fmt.Sprintf("%s: %s, %s", what, plural(p.tree.files, "file"), size(p.tree.bytes))
	if langs := p.languages(); len(langs) > 0 && p.kind == placeCode {
		s += "; mostly " + langs[0].name
		if len(langs) > 1 {
			s += ", then " + langs[1].name
		}
	}
	return s + "."
}

// tally is one row of the language table.
type tally struct {
	name  string
	files int
	bytes int64
}

// languages sums the extensions by language, code before the rest, most bytes first.
func (p place) languages() []tally {
	byName := map[string]*tally{}
	for _, e := range p.tree.exts {
		l := languages[strings.ToLower(e.ext)]
		if !l.code {
			continue
		}
		if byName[l.name] == nil {
			byName[l.name] = &tally{name: l.name}
		}
		byName[l.name].files += e.files
		byName[l.name].bytes += e.bytes
	}
	var all []tally
	for _, v := range byName {
		all = append(all, *v)
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].bytes != all[j].bytes {
			return all[i].bytes > all[j].bytes
		}
		return all[i].name < all[j].name
	})
	return all
}

func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

var manifestNames = []string{"go.mod", "package.json", "requirements.txt", "pyproject.toml", "setup.py", "Pipfile", "Cargo.toml", "pom.xml",
	"build.gradle", "build.gradle.kts", "Gemfile", "composer.json", "mix.exs", "pubspec.yaml", "Package.swift",
	"go.sum", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb", "bun.lock", "poetry.lock", "uv.lock", "Pipfile.lock",
	"Cargo.lock", "Gemfile.lock", "composer.lock", "mix.lock", "pubspec.lock", "Package.resolved", "gradle.lockfile"}

func isManifest(p string) bool {
	base := path.Base(p)
	return slices.Contains(manifestNames, base) || strings.HasSuffix(base, ".csproj") ||
		(strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt"))
}
