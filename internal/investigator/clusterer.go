package investigator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// clusterer groups the error lines of logs into templates.
var clusterer = childJob{name: "clusterer", listCalls: clustererWants, buildAnswer: clustererAnswer, answerMax: auditBytesMax}

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

func errorProbe(t *conversation) searchProbe {
	return logProbe(t, strings.Join(slices.Concat(fatalWords, errorWords), "|"), "failing lines", errorsUsual, errorsRoom)
}

func warningProbe(t *conversation) searchProbe {
	return logProbe(t, strings.Join(warnWords, "|"), "warnings", warningsUsual, warningsRoom)
}

// restProbe looks for failing lines unlike those of a part that was read.
func restProbe(t *conversation, errors probeProgress) (searchProbe, bool) {
	if !errors.done || errors.parts <= 1 {
		return searchProbe{}, false
	}
	counts := map[string]int{}
	for _, h := range errors.lastResult.hits {
		counts[templateOf(h.text)]++
	}
	var frequent []fileLine
	rare := 0
	for _, h := range errors.lastResult.hits {
		if counts[templateOf(h.text)] > 1 {
			frequent = append(frequent, h)
		} else {
			rare++
		}
	}
	words := remainderPattern(slices.Concat(fatalWords, errorWords), frequent)
	if words == "" {
		return searchProbe{}, false
	}
	p := logProbe(t, words, "failing lines of other forms", 1, restRoom)
	p.firstParts = upperEstimate(rare, errors.parts) * logLineBytes / restRoom
	return p, true
}

func clustererWants(t *conversation) []wantedCall {
	errors := errorProbe(t).run(t)
	wants := append(slices.Clone(errors.wants), warningProbe(t).run(t).wants...)
	if rest, ok := restProbe(t, errors); ok {
		wants = append(wants, rest.run(t).wants...)
	}
	return wants
}

// errorCluster is all lines of one template.
type errorCluster struct {
	kind     string
	template string
	hits     []fileLine
	severity severity
	k        int  // one part in k was read
	partial  bool // there may be more: the search was cut
}

func clustererAnswer(t *conversation) agentAnswer {
	var a agentAnswer
	errors := errorProbe(t).run(t)
	all := addClusters(nil, errors)
	addAnsweredLimits(&a, "failing lines", errors)
	if p, ok := restProbe(t, errors); ok {
		rest := p.run(t)
		all = addClusters(all, rest)
		if rest.ok {
			addAnsweredLimits(&a, "failing lines of other forms", rest)
		} else {
			a.addLimit("failing lines of rare forms: not looked for")
		}
	}
	failing := len(all)
	warnings := warningProbe(t).run(t)
	all = addClusters(all, warnings)
	addAnsweredLimits(&a, "warnings", warnings)
	slices.SortStableFunc(all, func(x, y errorCluster) int {
		if x.severity != y.severity {
			return x.severity.rank() - y.severity.rank()
		}
		return len(y.hits)*y.k - len(x.hits)*x.k
	})
	a.Summary = fmt.Sprintf("clusterer: %s of failing lines, %s of warnings", formatCount(failing, "form"), formatCount(len(all)-failing, "form"))
	for i, c := range all {
		if i == clustersShown {
			a.addLimit("error clusters: %d rarer ones not shown", len(all)-i)
			break
		}
		a.addFinding(c.toFinding())
	}
	if errors.ok && len(all) == 0 {
		a.addFact(factTemplate, "none: no line says error, warning or the like")
	}
	return a
}

func addAnsweredLimits(a *agentAnswer, label string, p probeProgress) {
	if p.ok {
		addProbeLimits(a, label, p)
	}
}

var serious = regexp.MustCompile(`(?i)panic|fatal|out of ?memory|segfault|corrupt|data loss|deadlock`)

// addClusters adds the clusters of a probe to the existing ones; a known template keeps the
// count of the probe that found it first.
func addClusters(all []errorCluster, p probeProgress) []errorCluster {
	old := len(all)
	index := map[string]int{}
	for i, c := range all {
		index[c.template] = i
	}
	for _, h := range p.lastResult.hits {
		if isOwnReport(h.path, defaultReport) {
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
			all = append(all, errorCluster{kind: kindCluster, template: tpl, k: p.parts, partial: p.parts <= 1 && p.lastResult.partial})
		}
		all[i].hits = append(all[i].hits, h)
	}
	for i := range all[old:] {
		all[old+i].setSeverity()
	}
	return all
}

// setSeverity sets the severity by the first line and the number of lines.
func (c *errorCluster) setSeverity() {
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

// toFinding shows the first and the last line of the cluster in time.
func (c errorCluster) toFinding() finding {
	slices.SortStableFunc(c.hits, func(x, y fileLine) int {
		tx, okx := parseTimestamp(x.text)
		ty, oky := parseTimestamp(y.text)
		if !okx || !oky {
			return 0
		}
		return tx.Compare(ty)
	})
	var quoted []fileLine
	files := map[string]bool{}
	for _, h := range c.hits {
		files[h.path] = true
		if isQuotable(h.text) {
			quoted = append(quoted, h)
		}
	}
	often := formatEstimate(len(c.hits), c.k) + "×"
	if c.partial || c.k > 1 && len(c.hits) == 1 {
		often = fmt.Sprintf("%d×", len(c.hits))
		often = "at least " + often
	}
	f := finding{Kind: c.kind, Severity: c.severity, Title: often + ": " + shorten(c.template, templateShown)}
	if len(files) > 1 {
		f.Title += " (" + formatCount(len(files), "file") + ")"
	}
	if len(quoted) == 0 {
		return f
	}
	f.Evidence = []evidence{quoted[0].asEvidence()}
	if len(quoted) > 1 {
		f.Evidence = append(f.Evidence, quoted[len(quoted)-1].asEvidence())
		from, ok1 := parseTimestamp(quoted[0].text)
		to, ok2 := parseTimestamp(quoted[len(quoted)-1].text)
		if ok1 && ok2 {
			f.Detail = "first and last are " + formatDuration(to.Sub(from)) + " apart"
		}
	} else if c.k <= 1 {
		f.Detail = "seen once"
	}
	if c.k > 1 {
		f.Detail = strings.TrimPrefix(f.Detail+fmt.Sprintf("; %s of them read", formatThousands(int64(len(c.hits)))), "; ")
	}
	return f
}
