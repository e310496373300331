package investigator

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
)

// directoryKind is what the coordinator takes the directory for.
type directoryKind string

const (
	directoryUnseen directoryKind = "unseen" // no look succeeded
	directoryEmpty  directoryKind = "empty"
	directoryCode   directoryKind = "code"
	directoryLogs   directoryKind = "logs"
	directoryOther  directoryKind = "other"
)

// directoryProfile describes the directory after the first look.
type directoryProfile struct {
	kind    directoryKind
	git     bool
	entries []dirEntry
	tree    globResult
	logs    []string // largest first
	logSize int64    // bytes of all logs, as far as seen
	// logFiles are the files that look like logs, of all sorts.
	logFiles logFiles
	source   int // files of code
}

var (
	lookTop  = wantedCall{name: toolList, args: map[string]any{"path": "."}, label: "the top directory"}
	lookTree = wantedCall{name: toolGlob, args: map[string]any{"pattern": "**"}, label: "the list of all files"}
)

const (
	logsMax    = 8 // log files that are named to children
	largestMax = 4
)

func profileDirectory(t *conversation, reportName string) directoryProfile {
	var p directoryProfile
	list, listed := t.resultOf(lookTop)
	if listed {
		p.entries, _ = parseList(list)
	}
	all, globbed := t.resultOf(lookTree)
	if globbed {
		p.tree = parseGlob(all)
	}
	inTree := 0
	for _, e := range p.entries {
		p.git = p.git || e.name == ".git"
		if !isOwnReport(e.name, reportName) && e.name != ".git" {
			inTree++
		}
	}
	sourceBytes := int64(0)
	for _, e := range p.tree.exts {
		if languages[e.ext].code {
			p.source += e.files
			sourceBytes += e.bytes
		}
	}
	logBytes := p.findLogs(t, reportName)
	switch {
	case len(p.entries) == 0 && !p.tree.complete && !listed:
		p.kind = directoryUnseen
	case inTree == 0 && p.tree.files == 0:
		p.kind = directoryEmpty
	case len(p.logs) > 0 && (p.source == 0 || (logBytes > sourceBytes && p.source < len(p.logs))):
		p.kind = directoryLogs
	case p.source > 0 || p.git:
		p.kind = directoryCode
	default:
		p.kind = directoryOther
	}
	return p
}

// notableRootNames are names in the top directory that are useful to children.
var notableRootNames = []string{"readme", "license", "licence", "copying", "changelog", "security", "contributing", "dockerfile", "makefile",
	".github", ".gitlab-ci.yml", ".travis.yml", ".circleci", "jenkinsfile", "azure-pipelines.yml", "main.", "setup.", "index."}

func (p directoryProfile) childHints() hints {
	h := hints{Exts: sourceExts(p.tree.exts), Files: p.tree.files}
	h.Exts = h.Exts[:min(len(h.Exts), extsMax)]
	for _, s := range p.tree.largest {
		if isSource(s.path) && originOf(s.path) == ownFile && len(h.Largest) < largestMax {
			h.Largest = append(h.Largest, s.path)
		}
	}
	for _, e := range p.entries {
		lower := strings.ToLower(e.name)
		if isManifest(e.name) || slices.ContainsFunc(notableRootNames, func(s string) bool { return strings.HasPrefix(lower, s) }) {
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

// describeDirectory returns one sentence about the place.
func (p directoryProfile) describeDirectory() string {
	what := map[directoryKind]string{directoryCode: "A source tree", directoryLogs: "A folder of logs", directoryOther: "A folder",
		directoryEmpty: "An empty folder", directoryUnseen: "A folder that could not be read"}[p.kind]
	if p.git && p.kind == directoryCode {
		what = "A git repository"
	}
	if !p.tree.complete {
		return what + "."
	}
	if p.kind == directoryEmpty {
		return what + "."
	}
	s := fmt.Sprintf("%s: %s, %s", what, formatCount(p.tree.files, "file"), formatSize(p.tree.bytes))
	if langs := p.languageTallies(); len(langs) > 0 && p.kind == directoryCode {
		s += "; mostly " + langs[0].name
		if len(langs) > 1 {
			s += ", then " + langs[1].name
		}
	}
	return s + "."
}

// languageTally is one row of the language table.
type languageTally struct {
	name  string
	files int
	bytes int64
}

// languageTallies sums the extensions by language, code before the rest, most bytes first.
func (p directoryProfile) languageTallies() []languageTally {
	byName := map[string]*languageTally{}
	for _, e := range p.tree.exts {
		l := languages[strings.ToLower(e.ext)]
		if !l.code {
			continue
		}
		if byName[l.name] == nil {
			byName[l.name] = &languageTally{name: l.name}
		}
		byName[l.name].files += e.files
		byName[l.name].bytes += e.bytes
	}
	var all []languageTally
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

func formatSize(n int64) string {
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
