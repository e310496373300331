package investigator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/jsonlog"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// clusterer groups the error lines of logs into templates.
var clusterer = childJob{name: "clusterer", listCalls: clustererWants, buildAnswer: clustererAnswer, answerMax: auditBytesMax}

const (
	clustersShown = 6
	templateShown = 120
	clusterMany   = 10 // errors of one form that make it a high finding

	errorForms   = 16 // forms read
	warningForms = 8
)

// Words of failing lines, one pattern each.
var (
	fatalWords = []string{`\b(?:FATAL|CRITICAL|PANIC|EMERG)\b`, `\bpanic: `, `Traceback \(most recent`, `OutOfMemory|[Oo]ut of memory`, `segfault|SIGSEGV`,
		`level"?[=:] ?"?(?:fatal|critical|panic)`}
	errorWords = []string{`\b(?:ERROR|ERR|SEVERE)\b`, `level"?[=:] ?"?(?:error|err)\b`, `\[error\]`, `" 5\d\d \d`, `Exception\b`, `\b[Ee]rror:`, `[^0] ?\b[Ff]ailed\b`, `\*\*\* .*\bError \d`, exceptionWords}
	warnWords  = []string{`\b(?:WARN|WARNING)\b`, `level"?[=:] ?"?warn`, `\[warn(?:ing)?\]`}

	fatalLine = lazyregexp.New(strings.Join(fatalWords, "|"))
	errorLine = lazyregexp.New(strings.Join(errorWords, "|"))
)

func askErrors(t *conversation) wantedCall {
	return askForms(t, strings.Join(slices.Concat(fatalWords, errorWords, []string{jsonlog.ErrorPattern, jsonlog.FailurePattern}), "|"), "failing lines", errorForms)
}

func askWarnings(t *conversation) wantedCall {
	return askForms(t, strings.Join(append(slices.Clone(warnWords), jsonlog.WarningPattern), "|"), "warnings", warningForms)
}

func clustererWants(t *conversation) []wantedCall {
	wants := []wantedCall{askErrors(t), askWarnings(t)}
	if errors, ok := t.grepOf(wants[0]); ok && hasTraces(errors) {
		wants = append(wants, askIncidents(t))
	}
	return wants
}

// errorCluster is all lines of one template.
type errorCluster struct {
	kind     string
	template string
	forms    []lineForm
	count    int            // lines
	partial  bool           // forms that were not read may be of this template, too
	causes   []errorCluster // exceptions whose stack traces follow these lines
	severity severity
}

func clustererAnswer(t *conversation) agentAnswer {
	var a agentAnswer
	errors, ok := t.grepOf(askErrors(t))
	all := addClusters(nil, errors)
	addFormLimits(&a, "failing lines", errors)
	found, _ := t.grepOf(askIncidents(t))
	all = readIncidents(found).fold(all)
	failing := len(all)
	reportFailingLines(all, errors.partial, &a)
	warnings, _ := t.grepOf(askWarnings(t))
	all = addClusters(all, warnings)
	addFormLimits(&a, "warnings", warnings)
	slices.SortStableFunc(all, func(x, y errorCluster) int {
		if x.severity != y.severity {
			return x.severity.rank() - y.severity.rank()
		}
		return y.count - x.count
	})
	a.Summary = fmt.Sprintf("clusterer: %s of failing lines, %s of warnings", formatCount(failing, "form"), formatCount(len(all)-failing, "form"))
	for i, c := range all {
		if i == clustersShown {
			a.addLimit("error clusters: %d rarer ones not shown", len(all)-i)
			break
		}
		a.addFinding(c.toFinding())
	}
	if ok && errors.matches == 0 && errors.skipped == 0 && len(all) == 0 {
		a.addFact(factTemplate, "none: no line says error, warning or the like")
	}
	return a
}

// reportFailingLines reports how many failing lines there are, each incident once.
func reportFailingLines(all []errorCluster, partial bool, a *agentAnswer) {
	n := 0
	for _, c := range all {
		n += c.count
	}
	if n == 0 {
		return
	}
	least := ""
	if partial {
		least = "at least "
	}
	a.addFact(factFailing, "%s%s in %s", least, formatCount(n, "failing line"), formatCount(len(all), "form"))
}

// addFormLimits adds the limits of a search for forms of lines.
func addFormLimits(a *agentAnswer, label string, s grepResult) {
	if s.partial {
		a.addLimit("%s: the %d most frequent forms of %s lines were read", label, len(s.hits), formatThousands(int64(s.matches)))
	}
	if s.skipped > 0 {
		a.addLimit("%s: %s skipped", label, formatCount(s.skipped, "large file"))
	}
}

var serious = lazyregexp.New(`(?i)panic|fatal|out of ?memory|segfault|corrupt|data loss|deadlock`)

// addClusters adds the forms of a search to the existing clusters; a known template keeps the count of
// the search that found it first.
func addClusters(all []errorCluster, s grepResult) []errorCluster {
	old := len(all)
	index := map[string]int{}
	for i, c := range all {
		index[c.template] = i
	}
	for _, f := range s.forms() {
		if isOwnReport(f.path, defaultReport) || traceRest.MatchString(f.text) || lineSeverity(f.text) == info {
			continue
		}
		tpl := templateOf(f.text)
		i, ok := index[tpl]
		if ok && i < old {
			continue
		}
		if !ok {
			i = len(all)
			index[tpl] = i
			all = append(all, errorCluster{kind: kindCluster, template: tpl, partial: s.partial})
		}
		all[i].forms, all[i].count = append(all[i].forms, f), all[i].count+f.count
	}
	for i := range all[old:] {
		all[old+i].setSeverity()
	}
	return all
}

// setSeverity sets the severity by the first line and the number of lines.
func (c *errorCluster) setSeverity() {
	c.severity = lineSeverity(c.forms[0].text)
	switch {
	case c.severity == low:
		c.kind = kindWarning
	case c.severity == medium && c.count >= clusterMany:
		c.severity = high
	}
}

// lineSeverity is the severity of one line: high for the end of a process or of its data, medium for an error, low
// for a warning. It is info for a line whose level says that it is none of them, whatever its text says.
func lineSeverity(text string) severity {
	r, isRecord := jsonlog.Parse(text)
	level := r.Level
	if !isRecord || level == jsonlog.Unknown && r.Error == "" {
		level = levelByWords(text)
	}
	switch {
	case level == jsonlog.Info:
		return info
	case level == jsonlog.Warning:
		return low
	case level == jsonlog.Fatal, serious.MatchString(text):
		return high
	}
	return medium
}

// levelTokens is how many words may stand before the level of a line: a time, a host, a program.
const levelTokens = 5

// firstLevel finds the first word that may be the level of a line. Its groups hold one that is neither an error nor a
// warning.
var firstLevel = lazyregexp.New(`\b(INFO|DEBUG|TRACE|NOTICE)\b|\[(?:info|debug|trace|notice)\]()|level"?[=:] ?"?(info|debug|trace|notice)\b` +
	`|\b[Ee]rror:|[Ee]xception|panic:|[Ff]ailed|Traceback|` + strings.Join(slices.Concat(fatalWords, errorWords[:3], warnWords), "|"))

// isInformative reports whether a line of text begins with a level that is neither an error nor a warning.
func isInformative(text string) bool {
	at := firstLevel.FindSubmatchIndex([]byte(text))
	isLevel := at != nil && (at[2] >= 0 || at[4] >= 0 || at[6] >= 0)
	return isLevel && len(strings.Fields(text[:at[0]])) <= levelTokens
}

// levelByWords is the level of a line of text that a search for failing lines or warnings found.
func levelByWords(text string) jsonlog.Level {
	switch {
	case isInformative(text):
		return jsonlog.Info
	case fatalLine.MatchString(text):
		return jsonlog.Fatal
	case errorLine.MatchString(text):
		return jsonlog.Error
	}
	return jsonlog.Warning
}

// toFinding shows the first line of the cluster, and where its last one is.
func (c errorCluster) toFinding() finding {
	files := map[string]bool{}
	var quoted []lineForm
	for _, f := range c.forms {
		files[f.path] = true
		if f.lastPath != "" {
			files[f.lastPath] = true
		}
		if isQuotable(f.text) {
			quoted = append(quoted, f)
		}
	}
	f := finding{Kind: c.kind, Severity: c.severity, Title: formatOften(c.count, c.partial) + ": " + clip.Marked(c.template, templateShown, "…") + c.describeCauses()}
	if len(files) > 1 {
		f.Title += " (several files)"
	}
	first := c.forms[0]
	switch {
	case len(quoted) > 0:
		first = quoted[0]
	case !isCitable(first.text):
		return f
	}
	f.Evidence = []evidence{first.asEvidence()}
	switch {
	case c.count == 1:
		f.Detail = "seen once"
	case first.lastPath != "":
		f.Detail = fmt.Sprintf("the last one is %s:%d", first.lastPath, first.lastLine)
	}
	return f
}
