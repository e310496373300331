package investigator

import (
	"path"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// language describes a file extension.
type language struct {
	name string
	code bool // written by people to be run: worth auditing
}

var languages = map[string]language{
	".go": {"Go", true}, ".py": {"Python", true}, ".js": {"JavaScript", true}, ".mjs": {"JavaScript", true},
	".cjs": {"JavaScript", true}, ".jsx": {"JavaScript", true}, ".ts": {"TypeScript", true}, ".tsx": {"TypeScript", true},
	".mts": {"TypeScript", true}, ".vue": {"Vue", true}, ".svelte": {"Svelte", true}, ".java": {"Java", true},
	".kt": {"Kotlin", true}, ".scala": {"Scala", true}, ".groovy": {"Groovy", true}, ".cs": {"C#", true}, ".fs": {"F#", true},
	".c": {"C", true}, ".h": {"C/C++ header", true}, ".cc": {"C++", true}, ".cpp": {"C++", true}, ".cxx": {"C++", true},
	".hpp": {"C++", true}, ".hh": {"C++", true}, ".m": {"Objective-C", true}, ".mm": {"Objective-C", true},
	".swift": {"Swift", true}, ".rs": {"Rust", true}, ".rb": {"Ruby", true}, ".php": {"PHP", true}, ".pl": {"Perl", true},
	".pm": {"Perl", true}, ".lua": {"Lua", true}, ".r": {"R", true}, ".dart": {"Dart", true}, ".ex": {"Elixir", true},
	".exs": {"Elixir", true}, ".erl": {"Erlang", true}, ".hs": {"Haskell", true}, ".ml": {"OCaml", true}, ".clj": {"Clojure", true},
	".zig": {"Zig", true}, ".nim": {"Nim", true}, ".jl": {"Julia", true}, ".sh": {"Shell", true}, ".bash": {"Shell", true},
	".ps1": {"PowerShell", true}, ".bat": {"Batch", true}, ".sql": {"SQL", true}, ".tf": {"Terraform", true},
	".asm": {"Assembly", true}, ".s": {"Assembly", true}, ".sol": {"Solidity", true}, ".proto": {"Protocol Buffers", true},
	".html": {"HTML", false}, ".css": {"CSS", false}, ".scss": {"CSS", false}, ".md": {"Markdown", false},
	".rst": {"reStructuredText", false}, ".txt": {"text", false}, ".json": {"JSON", false}, ".yaml": {"YAML", false},
	".yml": {"YAML", false}, ".toml": {"TOML", false}, ".xml": {"XML", false}, ".csv": {"CSV", false}, ".log": {"log", false},
}

// sourceExts are extensions of code, most bytes first.
func sourceExts(exts []extStat) []string {
	var code []extStat
	for _, e := range exts {
		if languages[e.ext].code {
			code = append(code, e)
		}
	}
	slices.SortStableFunc(code, func(a, b extStat) int { return int(b.bytes - a.bytes) })
	var names []string
	for _, e := range code {
		names = append(names, e.ext)
	}
	return names
}

func isSource(p string) bool { return languages[strings.ToLower(path.Ext(p))].code }

// fileOrigin says how much a line of this file counts as a finding: foreign and generated
// code nothing, tests and examples little.
type fileOrigin int

const (
	foreignFile    fileOrigin = iota // vendored, generated or built: not this project's to fix
	supportingFile                   // tests, fixtures, examples, documents
	ownFile
)

var (
	foreignDirs = []string{"vendor", "node_modules", "third_party", "thirdparty", "3rdparty", "external", ".venv", "venv",
		"site-packages", "bower_components", "pods", "dist", "build", "target", "generated", "gen", "_build", "deps", "coverage", ".git"}
	asideDirs = []string{"test", "tests", "__tests__", "spec", "specs", "testing", "testdata", "fixtures", "fixture", "e2e", "mock", "mocks",
		"__mocks__", "example", "examples", "_examples", "sample", "samples", "demo", "demos", "doc", "docs", "bench", "benchmark", "benchmarks",
		"integration", "testutil", "testutils"}
	foreignName = lazyregexp.New(`(?i)(\.pb\.go|\.pb\.gw\.go|_pb2?\.py|_generated\.|\.generated\.|\.gen\.|\.designer\.|^zz_generated|\.min\.|bindata\.go|\.bundle\.|\.lock$|-lock\.|\.snap$|\.map$|_string\.go$)`)
	testName    = lazyregexp.New(`(?i)(_test\.|\.test\.|\.spec\.|_spec\.|^test_|-test\.|^conftest\.py$|^test\.[a-z]+$|^benchmark)|(Tests?|IT|Spec|Benchmark)\.(java|kt|scala|cs|swift|php|groovy)$`)
)

func originOf(p string) fileOrigin {
	base := path.Base(p)
	if foreignName.MatchString(base) {
		return foreignFile
	}
	dirs := strings.Split(strings.ToLower(path.Dir(p)), "/")
	for _, d := range dirs {
		if slices.Contains(foreignDirs, d) {
			return foreignFile
		}
	}
	if testName.MatchString(base) {
		return supportingFile
	}
	for _, d := range dirs {
		if slices.Contains(asideDirs, d) || strings.HasSuffix(d, "-tests") || strings.HasSuffix(d, ".tests") || strings.HasSuffix(d, "_test") {
			return supportingFile
		}
	}
	return ownFile
}

// testNames returns the names that a test of this file would have by the conventions of its
// language; none if there is no convention.
func testNames(p string) []string {
	ext := path.Ext(p)
	stem := strings.TrimSuffix(path.Base(p), ext)
	switch ext {
	case ".go", ".ex", ".dart":
		if ext == ".ex" {
			ext = ".exs"
		}
		return []string{stem + "_test" + ext}
	case ".py":
		return []string{"test_" + stem + ".py", stem + "_test.py"}
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", ".svelte":
		alt := "{js,jsx,mjs,cjs,ts,tsx}"
		return []string{stem + ".{test,spec}." + alt, stem + "-test." + alt, "test-" + stem + "." + alt}
	case ".java", ".kt", ".scala", ".cs", ".php", ".swift", ".groovy":
		return []string{stem + "{Test,Tests,Spec,IT}" + ext, "Test" + stem + ext}
	case ".rb":
		return []string{stem + "_{spec,test}.rb", "test_" + stem + ".rb"}
	}
	return nil
}

// globSafe reports whether a name matches only itself inside a glob pattern.
func globSafe(s string) bool { return !strings.ContainsAny(s, `*?[]{}\,!`) }

// nameWithout is a list of glob alternatives for names with this extension that
// do not end in suffix: a glob cannot say "not".
func nameWithout(suffix, ext string) []string {
	var alts []string
	for i := len(suffix) - 1; i >= 0; i-- {
		alts = append(alts, "*[^"+string(suffix[i])+"]"+suffix[i+1:]+ext)
		if i > 0 {
			alts = append(alts, suffix[i:]+ext)
		}
	}
	return alts
}

// sourceGlob matches source files with these extensions, except files that are certainly
// not hand-written product code.
func sourceGlob(exts, more []string) string {
	var alts []string
	for _, e := range exts {
		switch e {
		case ".go":
			alts = append(alts, nameWithout("_test", e)...)
		case ".js":
			alts = append(alts, nameWithout(".min", e)...)
		default:
			alts = append(alts, "*"+e)
		}
	}
	alts = append(alts, more...)
	if len(alts) == 1 {
		return "**/" + alts[0]
	}
	return "**/{" + strings.Join(alts, ",") + "}"
}

var logBases = []string{"syslog", "messages", "dmesg", "auth.log", "kern.log", "catalina.out", "nohup.out"}

// logWord is the word "log" in the name of a file.
var logWord = lazyregexp.New(`(?:^|[^a-z])logs?(?:[^a-z]|$)`)

// rotatedName is the end of the name of a log that was rotated: a number or a date.
var rotatedName = lazyregexp.New(`[._-]\d[\d._-]*$`)

// isPacked reports whether a path names a compressed file.
func isPacked(p string) bool {
	return slices.Contains([]string{".gz", ".zip", ".xz", ".bz2", ".zst", ".tgz", ".lz4"}, extOf(p))
}

// isLog reports whether a path looks like a log by its name.
func isLog(p string) bool {
	base := strings.ToLower(path.Base(p))
	if isPacked(base) {
		return false
	}
	if strings.HasSuffix(base, ".log") || strings.Contains(base, ".log.") || slices.Contains(logBases, base) {
		return true
	}
	return inLogDir(p) && slices.Contains([]string{"", ".txt", ".out", ".err", ".jsonl", ".ndjson"}, path.Ext(base))
}

func inLogDir(p string) bool {
	dir := strings.ToLower(path.Base(path.Dir(p)))
	return dir == "log" || dir == "logs"
}

// isPackedLog reports whether a path looks like a compressed log.
func isPackedLog(p string) bool {
	return isPacked(p) && (isLog(strings.TrimSuffix(p, path.Ext(p))) || mayBeLog(strings.TrimSuffix(p, path.Ext(p))))
}

// isJSONLines reports whether a path names a file of JSON lines.
func isJSONLines(p string) bool {
	return slices.Contains([]string{".jsonl", ".ndjson"}, extOf(rotatedName.ReplaceAllString(p, "")))
}

// mayBeLog reports whether only the lines of a file can show whether it is a log.
func mayBeLog(p string) bool {
	if isLog(p) || isPacked(p) {
		return false
	}
	base := strings.ToLower(rotatedName.ReplaceAllString(path.Base(p), ""))
	switch path.Ext(base) {
	case ".jsonl", ".ndjson", ".out", ".err":
		return true
	case ".json", ".txt", "":
		return inLogDir(p) || logWord.MatchString(base)
	}
	return false
}

// isOwnReport reports whether a file in the top directory is one that scout writes: it is never
// input.
func isOwnReport(p, reportName string) bool {
	return p == reportName || p == defaultReport || p == reportJSON
}
