package investigator

import (
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// splitInline splits the content of an inline table or an array at its commas, not those in quotes or brackets.
func splitInline(text string) (parts []string) {
	depth, quote, from := 0, rune(0), 0
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			depth--
		case r == ',' && depth == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

// insideOf cuts the brackets around an inline table or an array off; ok is false for another value.
func insideOf(value, open, end string) (inside string, ok bool) {
	value = strings.TrimSpace(value)
	return strings.TrimSuffix(strings.TrimPrefix(value, open), end), strings.HasPrefix(value, open) && strings.HasSuffix(value, end)
}

var (
	tomlTable  = lazyregexp.New(`^\[([^\[\]]+)\]`)
	tomlPair   = lazyregexp.New(`^("[^"]+"|[\w.-]+)\s*=\s*(.*)$`)
	tomlNote   = lazyregexp.New(`(^|\s)#[^"']*$`)
	tomlString = lazyregexp.New(`"([^"]*)"|'([^']*)'`)
)

// tomlEntry is a key with its value. Entries of inline tables stand on their own, under the name of their table.
type tomlEntry struct {
	table, key, value string
	at                fileLine
}

// readTOML reads the entries of a TOML file, as far as manifests use the language. An array has one entry an element,
// whose key is that of the array.
func readTOML(lines []fileLine) (all []tomlEntry) {
	table, array := "", "" // array is the key of an array that goes on in the next line
	addElements := func(key, text string, l fileLine) {
		for _, s := range tomlString.FindAllStringSubmatch(text, -1) {
			all = append(all, tomlEntry{table, key, s[1] + s[2], l})
		}
	}
	for _, l := range lines {
		text := strings.TrimSpace(tomlNote.ReplaceAllString(l.text, ""))
		isClosed := strings.Contains(tomlString.ReplaceAllString(text, ""), "]")
		if array != "" {
			addElements(array, text, l)
			if isClosed {
				array = ""
			}
			continue
		}
		if t := tomlTable.FindStringSubmatch(text); t != nil {
			table = t[1]
			continue
		}
		p := tomlPair.FindStringSubmatch(text)
		if p == nil {
			continue
		}
		key := strings.Trim(p[1], `"`)
		if inside, ok := insideOf(p[2], "{", "}"); ok && strings.HasSuffix("."+key, "dependencies") {
			for _, part := range splitInline(inside) {
				if in := tomlPair.FindStringSubmatch(strings.TrimSpace(part)); in != nil {
					all = append(all, tomlEntry{strings.TrimPrefix(table+"."+key, "."), strings.Trim(in[1], `"`), in[2], l})
				}
			}
			continue
		}
		if strings.HasPrefix(p[2], "[") {
			addElements(key, p[2], l)
			if !isClosed {
				array = key
			}
			continue
		}
		all = append(all, tomlEntry{table, key, p[2], l})
	}
	return all
}

func readPyproject(m manifest, a *agentAnswer) {
	var deps []dependency
	var free []fileLine
	for _, e := range readTOML(m.lines) {
		name, version := e.key, strings.Trim(e.value, `"'`)
		isFree := strings.Contains(e.value, `"*"`)
		switch {
		case e.table == "project" && e.key == "dependencies":
			p := pyName.FindStringSubmatch(e.value)
			if p == nil {
				continue
			}
			name, version = p[1], p[3]
			isFree = strings.TrimSpace(p[3]) == "" && !strings.Contains(e.value, "@")
		case e.table == "tool.poetry.dependencies":
		default:
			continue
		}
		if name == "python" {
			continue
		}
		deps = append(deps, dependency{fileLine: e.at, name: strings.ToLower(name), version: version})
		if isFree {
			free = append(free, e.at)
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
	cargoTable = lazyregexp.New(`^(?:workspace\.)?(?:target\..*\.)?(?:dev-|build-)?dependencies$`)
	// cargoOne is a table, or a dotted key, of one dependency.
	cargoOne = lazyregexp.New(`^(?:workspace\.)?(?:target\..*\.)?(?:dev-|build-)?dependencies\.("[^"]+"|[\w-]+)$`)
)

func readCargo(m manifest, a *agentAnswer) {
	var deps []dependency
	var free, elsewhere []fileLine
	known := map[string]bool{} // tables of one dependency that were counted
	for _, e := range readTOML(m.lines) {
		name, isNew := e.key, true
		if one := cargoOne.FindStringSubmatch(e.table); one != nil {
			name, isNew = strings.Trim(one[1], `"`), !known[e.table]
			known[e.table] = true
		} else if one := cargoOne.FindStringSubmatch(e.key); one != nil {
			name = strings.Trim(one[1], `"`)
		} else if !cargoTable.MatchString(e.table) {
			continue
		}
		if isNew {
			deps = append(deps, dependency{fileLine: e.at, name: name, version: e.value})
		}
		switch {
		case strings.Contains(e.value, `"*"`):
			free = append(free, e.at)
		case strings.Contains(e.value, "git =") || e.key == "git" && known[e.table]:
			elsewhere = append(elsewhere, e.at)
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
