package investigator

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// dependencies reads the manifests: the project's dependencies, and which of them are not
// pinned, abandoned or replaced.
var dependencies = childJob{name: "dependencies", listCalls: dependenciesWants, buildAnswer: dependenciesAnswer}

const (
	manifestLines = 160
	manifestsMax  = 4
	unpinnedShown = `^FROM\s+\S+(:latest)?\s*$|^FROM\s+[^:@\s]+(\s|$)|uses:\s*\S+@(main|master|latest|HEAD)\b`
)

var (
	askManifests = wantedCall{name: toolGlob, label: "manifests below the top directory", args: map[string]any{
		"pattern": "**/{go.mod,package.json,requirements*.txt,pyproject.toml,Cargo.toml,pom.xml,build.gradle,Gemfile,composer.json,*.csproj}"}}
	askImages = wantedCall{name: toolGrep, label: "images and CI actions", quiet: true, args: map[string]any{
		"pattern": unpinnedShown, "glob": "{Dockerfile*,**/Dockerfile*,.github/workflows/*}"}}
)

func askManifest(p string) wantedCall {
	return wantedCall{name: toolRead, args: map[string]any{"path": p, "limit": manifestLines}, label: p}
}

// manifestReaders turn a manifest into facts and findings.
var manifestReaders = map[string]func(m manifest, a *agentAnswer){
	"go.mod": readGoMod, "package.json": readPackageJSON, "requirements.txt": readRequirements, "pyproject.toml": readPyproject,
	"Cargo.toml": readCargo, "pom.xml": readPom, "build.gradle": readGradle, "build.gradle.kts": readGradle,
	"Gemfile": readGemfile, "composer.json": readPackageJSON,
}

func readerOf(p string) func(manifest, *agentAnswer) {
	base := path.Base(p)
	if strings.HasPrefix(base, "requirements") {
		base = "requirements.txt"
	}
	return manifestReaders[base]
}

// manifestPaths chooses the manifests to read: those of the top directory, or else the
// nearest ones below it.
func manifestPaths(t *conversation) []string {
	var paths []string
	for _, name := range t.hints.Root {
		if readerOf(name) != nil {
			paths = append(paths, name)
		}
	}
	if len(paths) == 0 {
		text, _ := t.resultOf(askManifests)
		for _, p := range parseGlob(text).paths {
			if readerOf(p) != nil && originOf(p) == ownFile {
				paths = append(paths, p)
			}
		}
		slices.SortStableFunc(paths, func(x, y string) int { return strings.Count(x, "/") - strings.Count(y, "/") })
	}
	return paths[:min(len(paths), manifestsMax)]
}

func dependenciesWants(t *conversation) []wantedCall {
	var wants []wantedCall
	if !slices.ContainsFunc(t.hints.Root, func(n string) bool { return readerOf(n) != nil }) {
		wants = append(wants, askManifests)
	}
	wants = append(wants, askImages)
	for _, p := range manifestPaths(t) {
		wants = append(wants, askManifest(p))
	}
	return wants
}

// manifest is the part of one manifest that was read.
type manifest struct {
	path  string
	lines []fileLine
	total int
	root  []string // names in the top directory, for lock files
}

func (m manifest) hasLockFile(names ...string) bool {
	if strings.Contains(m.path, "/") {
		return true // its directory was not listed: report nothing
	}
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(m.root, n) })
}

func dependenciesAnswer(t *conversation) agentAnswer {
	a := agentAnswer{}
	paths := manifestPaths(t)
	for _, p := range paths {
		text, ok := t.resultOf(askManifest(p))
		if !ok {
			continue
		}
		page := parseRead(p, text)
		if len(page.lines) == 0 {
			a.addLimit("%s: the result could not be read", p)
			continue
		}
		if page.total > len(page.lines) {
			a.addLimit("%s: %d of %d lines were read", p, len(page.lines), page.total)
		}
		m := manifest{path: p, lines: page.lines, total: page.total, root: t.hints.Root}
		readerOf(p)(m, &a)
		reportDeclarations(m, &a)
	}
	if len(paths) == 0 {
		a.addLimit("dependencies: no manifest that scout can read")
	}
	if text, ok := t.resultOf(askImages); ok {
		reportUnpinnedImages(parseGrep(text), &a)
	}
	a.Summary = "dependencies: " + formatCount(len(paths), "manifest")
	return a
}

func reportUnpinnedImages(s grepResult, a *agentAnswer) {
	var from, uses []fileLine
	for _, h := range s.hits {
		switch {
		case originOf(h.path) != ownFile || !isQuotable(h.text):
		case strings.Contains(h.text, "uses:"):
			uses = append(uses, h)
		case !strings.HasPrefix(strings.TrimSpace(h.text), "FROM scratch") && !strings.Contains(h.text, "$"):
			from = append(from, h)
		}
	}
	addDependencyFinding(a, from, low, "Image without a fixed version in %s", "")
	addDependencyFinding(a, uses, low, "CI action that follows a branch in %s", "")
}

// addDependencyFinding adds one finding about these lines, or none if there are none. Without a detail the
// finding gets the one of its kind.
func addDependencyFinding(a *agentAnswer, hits []fileLine, sev severity, title, detail string) {
	f := finding{Kind: kindDependency, Severity: sev, Title: fmt.Sprintf(title, formatCount(len(hits), "place")), Detail: detail}
	for _, h := range hits {
		shown := h.asEvidence()
		if isCitable(h.text) && len(f.Evidence) < repeatsMax && !slices.Contains(f.Evidence, shown) { // a line may have several
			f.Evidence = append(f.Evidence, shown)
		}
	}
	a.addFinding(f)
}

// abandoned are packages that their own authors advise against, with the replacement that
// the authors or the community name. The list is as of the time of writing, and the finding
// says so.
var abandoned = map[string]string{
	"github.com/dgrijalva/jwt-go": "golang-jwt/jwt (CVE-2020-26160)", "github.com/satori/go.uuid": "google/uuid",
	"github.com/golang/protobuf": "google.golang.org/protobuf", "github.com/gogo/protobuf": "google.golang.org/protobuf",
	"github.com/pkg/errors": "errors of the standard library", "github.com/golang/mock": "go.uber.org/mock",
	"github.com/boltdb/bolt": "go.etcd.io/bbolt", "github.com/gorilla/context": "context of the standard library",
	"github.com/opentracing/opentracing-go": "OpenTelemetry", "github.com/mitchellh/mapstructure": "go-viper/mapstructure",
	"github.com/streadway/amqp": "rabbitmq/amqp091-go", "gopkg.in/yaml.v2": "a maintained YAML module", "gopkg.in/yaml.v3": "go.yaml.in/yaml/v3",
	"github.com/go-redis/redis": "redis/go-redis", "github.com/nats-io/stan.go": "JetStream of nats.go", "github.com/coreos/etcd": "go.etcd.io/etcd",
	"request": "fetch or undici", "node-uuid": "uuid", "moment": "a maintained date library", "tslint": "eslint", "istanbul": "nyc or c8",
	"left-pad": "String.padStart", "node-sass": "sass", "phantomjs": "a headless browser", "babel-eslint": "@babel/eslint-parser",
	"request-promise": "fetch or undici", "har-validator": "nothing", "querystring": "URLSearchParams", "domexception": "the platform's own",
	"pycrypto": "pycryptodome", "nose": "pytest", "mock": "unittest.mock", "sklearn": "scikit-learn", "python-jose": "PyJWT",
	"failure": "thiserror or anyhow", "structopt": "clap", "error-chain": "thiserror or anyhow", "lazy_static": "std::sync::LazyLock",
}

// reportAbandoned reports the dependencies of a manifest that are on the list.
func reportAbandoned(a *agentAnswer, deps []dependency) {
	var hits []fileLine
	var words []string
	for _, d := range deps {
		if instead, ok := abandoned[d.name]; ok && !d.indirect {
			hits = append(hits, d.fileLine)
			words = append(words, d.name+" → "+instead)
		}
	}
	f := finding{Kind: kindDependency, Severity: low, Title: formatCount(len(hits), "dependency") + " abandoned or replaced",
		Detail: "no fixes come any more, as far as scout's own list knows: " + strings.Join(words[:min(len(words), repeatsMax)], "; ")}
	for _, h := range hits[:min(len(hits), repeatsMax)] {
		f.Evidence = append(f.Evidence, h.asEvidence())
	}
	a.addFinding(f)
}

// dependency is one line of a manifest that names another project.
type dependency struct {
	fileLine
	name, version string
	indirect, dev bool
}

const manyDependencies = 80

// reportManyDependencies reports a manifest with very many direct dependencies.
func reportManyDependencies(a *agentAnswer, m manifest, direct int, first fileLine) {
	if direct >= manyDependencies && isQuotable(first.text) {
		a.addFinding(finding{Kind: kindDependency, Severity: low, Title: fmt.Sprintf("%s names %d direct dependencies", m.path, direct),
			Detail: "each is code that nobody here reviews", Evidence: []evidence{first.asEvidence()}})
	}
}
