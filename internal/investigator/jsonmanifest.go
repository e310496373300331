package investigator

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// jsonMember is one member of an object of a JSON file.
type jsonMember struct {
	in    []string // the keys of the objects around it
	key   string
	text  string // the value of a string
	shown string // the member as text: `"key": "value"`, or `"key": {`
	at    fileLine
}

func (m jsonMember) isIn(section string) bool { return len(m.in) == 1 && m.in[0] == section }

// jsonReader reads the members of a JSON file, however its lines are broken.
type jsonReader struct {
	from    *json.Decoder
	lines   []fileLine
	starts  []int // where each line begins
	members []jsonMember
}

// readMembers reads a JSON file as far as it was shown. whole is false if it is cut off, or is not JSON.
func readMembers(lines []fileLine) (members []jsonMember, whole bool) {
	r := &jsonReader{lines: lines}
	var b strings.Builder
	for _, l := range lines {
		r.starts = append(r.starts, b.Len())
		b.WriteString(l.text + "\n")
	}
	r.from = json.NewDecoder(strings.NewReader(b.String()))
	r.from.UseNumber()
	whole = r.readValue(nil, jsonMember{})
	return r.members, whole
}

// readValue reads the value of a member; one without a key is an element of an array, or the whole file.
func (r *jsonReader) readValue(in []string, m jsonMember) bool {
	token, err := r.from.Token()
	if err != nil {
		return false
	}
	delim, isDelim := token.(json.Delim)
	if text, isText := token.(string); isText {
		m.text = text
	}
	if m.key != "" {
		m.shown = encodeJSON(m.key) + ": "
		if isDelim {
			m.shown += delim.String()
		} else {
			m.shown += encodeJSON(token)
		}
		r.members = append(r.members, m)
		in = append(slices.Clone(in), m.key)
	}
	if !isDelim {
		return true
	}
	for r.from.More() {
		next := jsonMember{in: in}
		if delim == '{' {
			if token, err = r.from.Token(); err != nil {
				return false
			}
			next.key, _ = token.(string)
			next.at = r.currentLine()
		}
		if !r.readValue(in, next) {
			return false
		}
	}
	_, err = r.from.Token() // the end
	return err == nil
}

// currentLine is the line of the token that was read last.
func (r *jsonReader) currentLine() fileLine {
	offset := int(r.from.InputOffset()) - 1
	return r.lines[sort.Search(len(r.starts), func(i int) bool { return r.starts[i] > offset })-1]
}

var (
	loose  = lazyregexp.New(`^(\*|latest|x|next|>=?\s*[\d.]+|dev-\w+|)$`)
	remote = lazyregexp.New(`^(git|http|file:|github:|link:)|^[\w-]+/[\w.-]+(#|$)`)

	dependencySections = []string{"dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "require", "require-dev"}
	hookScripts        = []string{"preinstall", "install", "postinstall"}
)

// packageJSON is what a package.json or composer.json declares.
type packageJSON struct {
	deps                  []dependency
	free, elsewhere       []fileLine // dependencies of any version, and those from outside the registry
	hooks, sections       []fileLine
	isPrivate             bool
	production, developed int
}

func (p *packageJSON) addMember(m jsonMember, php bool) {
	switch {
	case len(m.in) == 0:
		p.isPrivate = p.isPrivate || m.shown == `"private": true`
		if slices.Contains(dependencySections, m.key) {
			p.sections = append(p.sections, m.at)
		}
	case m.isIn("scripts") && slices.Contains(hookScripts, m.key):
		p.hooks = append(p.hooks, m.at)
	case len(m.in) == 1 && slices.Contains(dependencySections, m.in[0]):
		if php && (m.key == "php" || strings.HasPrefix(m.key, "ext-")) || strings.HasSuffix(m.shown, "{") {
			return
		}
		d := dependency{fileLine: m.at, name: m.key, version: m.text, dev: strings.Contains(m.in[0], "dev")}
		p.deps = append(p.deps, d)
		switch {
		case m.in[0] == "peerDependencies":
		case loose.MatchString(d.version):
			p.free = append(p.free, m.at)
		case remote.MatchString(d.version):
			p.elsewhere = append(p.elsewhere, m.at)
		}
		if d.dev {
			p.developed++
		} else {
			p.production++
		}
	}
}

func readPackageJSON(m manifest, a *agentAnswer) {
	var p packageJSON
	members, whole := readMembers(m.lines)
	for _, one := range members {
		p.addMember(one, strings.HasSuffix(m.path, "composer.json"))
	}
	if !whole && m.total == len(m.lines) {
		a.addLimit("%s: read only as far as it is valid JSON in lines of at most %d bytes", m.path, readLineMax)
	}
	a.addFact(factManifest, "`%s`: %d for production, %d for development", m.path, p.production, p.developed)
	addDependencyFinding(a, p.free, medium, "Any version accepted in %s", "")
	addDependencyFinding(a, p.elsewhere, medium, "Dependency from outside the registry in %s",
		"the registry neither keeps nor checks it")
	if len(p.hooks) > 0 {
		a.addFinding(finding{Kind: kindDependency, Severity: low, Title: "A script runs at install time", Detail: "whoever installs this runs it unasked",
			Evidence: []evidence{p.hooks[0].asEvidence()}})
	}
	reportAbandoned(a, p.deps)
	if len(p.deps) == 0 || len(p.sections) == 0 {
		return
	}
	reportManyDependencies(a, m, len(p.deps), p.sections[0])
	if !m.hasLockFile("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb", "bun.lock", "composer.lock") {
		sev, note := low, "usual for a published library, not for an application"
		if p.isPrivate {
			sev, note = medium, kindReasons[kindDependency]
		}
		a.addFinding(finding{Kind: kindDependency, Severity: sev, Title: "No lock file beside " + m.path, Detail: note, Evidence: []evidence{p.sections[0].asEvidence()}})
	}
}

// readLineMax is how much of a line read_file shows.
const readLineMax = 400

// declarations are the lines that may declare something about the project: of a JSON file, one a member.
func (m manifest) declarations() (all []declaration) {
	if !strings.HasSuffix(m.path, ".json") {
		for _, l := range m.lines {
			all = append(all, declaration{l.text, l})
		}
		return all
	}
	members, _ := readMembers(m.lines)
	for _, one := range members {
		all = append(all, declaration{one.shown, one.at})
	}
	return all
}

// declaration is a text and the line that has it.
type declaration struct {
	text string
	at   fileLine
}
