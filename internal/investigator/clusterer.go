package investigator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// clusterer groups the error lines of logs into templates.
var clusterer = job{name: "clusterer", wants: clustererWants, answer: clustererAnswer, bytes: auditBytesMax}

const (
	clustersShown = 6
	templateShown = 120
	clusterMany   = 10 // errors of one form that make it a high finding

	errorsUsual, errorsRoom     = 20, 2400 // see logProbe
	warningsUsual, warningsRoom = 20, 1400
	restRoom                    = 1400
)

// Words of failing lines, one pattern each.
var (
	fatalWords = []string{`\b(?:FATAL|CRITICAL|PANIC|EMERG)\b`, `\bpanic: `, `Traceback \(most recent`, `OutOfMemory|[Oo]ut of memory`, `segfault|SIGSEGV`,
		`level"?[=:] ?"?(?:fatal|critical|panic)`}
	errorWords = []string{`\b(?:ERROR|ERR|SEVERE)\b`, `level"?[=:] ?"?(?:error|err)\b`, `\[error\]`, `" 5\d\d \d`, `Exception\b`, `\b[Ee]rror:`, `[^0] ?\b[Ff]ailed\b`}
	warnWords  = []string{`\b(?:WARN|WARNING)\b`, `level"?[=:] ?"?warn`, `\[warn(?:ing)?\]`}

	fatalLine = regexp.MustCompile(strings.Join(fatalWords, "|"))
	errorLine = regexp.MustCompile(strings.Join(errorWords, "|"))
)

func errorProbe(t *talk) probe {
	return logProbe(t, strings.Join(slices.Concat(fatalWords, errorWords), "|"), "failing lines", errorsUsual, errorsRoom)
}

func warningProbe(t *talk) probe {
	return logProbe(t, strings.Join(warnWords, "|"), "warnings", warningsUsual, warningsRoom)
}

// restProbe looks for failing lines unlike those of a part that was read.
func restProbe(t *talk, errors probed) (probe, bool) {
	if !errors.done || errors.k <= 1 {
		return probe{}, false
	}
	counts := map[string]int{}
	for _, h := range errors.got.hits {
		counts[templateOf(h.text)]++
	}
	var frequent []hit
	rare := 0
	for _, h := range errors.got.hits {
		if counts[templateOf(h.text)] > 1 {
			frequent = append(frequent, h)
		} else {
			rare++
		}
	}
	words := restOf(slices.Concat(fatalWords, errorWords), frequent)
	if words == "" {
		return probe{}, false
	}
	p := logProbe(t, words, "failing lines of other forms", 1, restRoom)
	p.first = atMost(rare, errors.k) * logLineBytes / restRoom
	return p, true
}

func clustererWants(t *talk) []want {
	errors := errorProbe(t).run(t)
	wants := append(slices.Clone(errors.wants), warningProbe(t).run(t).wants...)
	if rest, ok := restProbe(t, errors); ok {
		wants = append(wants, rest.run(t).wants...)
	}
	return wants
}

// cluster is all lines of one template.
type cluster struct {
	kind     string
	template string
	hits     []hit
	severity severity
	k        int  // one part in k was read
	partial  bool // there may be more: the search was cut
}

func clustererAnswer(t *talk) answer {
	var a answer
	errors := errorProbe(t).run(t)
	all := clusters(nil, errors)
	toldIf(&a, "failing lines", errors)
	if p, ok := restProbe(t, errors); ok {
		rest := p.run(t)
		all = clusters(all, rest)
		if rest.ok {
			toldIf(&a, "failing lines of other forms", rest)
		} else {
			a.limit("failing lines of rare forms: not looked for")
		}
	}
	failing := len(all)
	warnings := warningProbe(t).run(t)
	all = clusters(all, warnings)
	toldIf(&a, "warnings", warnings)
	slices.SortStableFunc(all, func(x, y cluster) int {
		if x.severity != y.severity {
			return x.severity.rank() - y.severity.rank()
		}
		return len(y.hits)*y.k - len(x.hits)*x.k
	})
	a.Summary = fmt.Sprintf("clusterer: %s of failing lines, %s of warnings", plural(failing, "form"), plural(len(all)-failing, "form"))
	for i, c := range all {
		if i == clustersShown {
			a.limit("error clusters: %d rarer ones not shown", len(all)-i)
			break
		}
		a.add(c.finding())
	}
	if errors.ok && len(all) == 0 {
		a.fact(factTemplate, "none: no line says error, warning or the like")
	}
	return a
}

func toldIf(a *answer, label string, p probed) {
	if p.ok {
		toldPart(a, label, p)
	}
}

var serious = regexp.MustCompile(`(?i)panic|fatal|out of ?memory|segfault|corrupt|data loss|deadlock`)

// clusters adds the clusters of a probe to the existing ones; a known template keeps the
// count of the probe that found it first.
func clusters(all []cluster, p probed) []cluster {
	old := len(all)
	index := map[string]int{}
	for i, c := range all {
		index[c.template] = i
	}
	for _, h := range p.got.hits {
		if ours(h.path, defaultReport) {
			continue
		}
		tpl := templateOf(h.text)
		i, ok := index[tpl]
		if ok && i < old {
			continue
		}
		if !ok {
			i = len(all)
			index[tpl] = i
			all = append(all, cluster{kind: kindCluster, template: tpl, k: p.k, partial: p.k <= 1 && p.got.partial})
		}
		all[i].hits = append(all[i].hits, h)
	}
	for i := range all[old:] {
		all[old+i].judge()
	}
	return all
}

// judge sets the severity by the first line and the number of lines.
func (c *cluster) judge() {
	text := c.hits[0].text
	switch {
	case fatalLine.MatchString(text), errorLine.MatchString(text) && serious.MatchString(text):
		c.severity = high
	case !errorLine.MatchString(text):
		c.kind, c.severity = kindWarning, low
	case len(c.hits)*c.k >= clusterMany && (c.k == 1 || len(c.hits) > 1): // one line of a part is no estimate
		c.severity = high
	default:
		c.severity = medium
	}
}

// finding shows the first and the last line of the cluster in time.
func (c cluster) finding() finding {
	slices.SortStableFunc(c.hits, func(x, y hit) int {
		tx, okx := stampOf(x.text)
		ty, oky := stampOf(y.text)
		if !okx || !oky {
			return 0
		}
		return tx.Compare(ty)
	})
	var quoted []hit
	files := map[string]bool{}
	for _, h := range c.hits {
		files[h.path] = true
		if quotable(h.text) {
			quoted = append(quoted, h)
		}
	}
	often := estimate(len(c.hits), c.k) + "×"
	if c.partial || c.k > 1 && len(c.hits) == 1 {
		often = fmt.Sprintf("%d×", len(c.hits))
		often = "at least " + often
	}
	f := finding{Kind: c.kind, Severity: c.severity, Title: often + ": " + shorten(c.template, templateShown)}
	if len(files) > 1 {
		f.Title += " (" + plural(len(files), "file") + ")"
	}
	if len(quoted) == 0 {
		return f
	}
	f.Evidence = []evidence{quoted[0].evidence()}
	if len(quoted) > 1 {
		f.Evidence = append(f.Evidence, quoted[len(quoted)-1].evidence())
		from, ok1 := stampOf(quoted[0].text)
		to, ok2 := stampOf(quoted[len(quoted)-1].text)
		if ok1 && ok2 {
			f.Detail = "first and last are " + span(to.Sub(from)) + " apart"
		}
	} else if c.k <= 1 {
		f.Detail = "seen once"
	}
	if c.k > 1 {
		f.Detail = strings.TrimPrefix(f.Detail+fmt.Sprintf("; %s of them read", thousands(int64(len(c.hits)))), "; ")
	}
	return f
}
