package scout

import (
	"fmt"
	"regexp"
	"slices"
)

// clusterer groups the error lines of logs into templates.
var clusterer = job{name: "clusterer", wants: clustererWants, answer: clustererAnswer, bytes: auditBytesMax}

const (
	fatalWords = `\b(FATAL|CRITICAL|PANIC|EMERG)\b|\bpanic: |Traceback \(most recent|OutOfMemory|out of memory|segfault|SIGSEGV|level"?[=:] ?"?(fatal|critical|panic)`
	errorWords = `\b(ERROR|ERR|SEVERE)\b|level"?[=:] ?"?(error|err)\b|\[error\]|" 5\d\d \d|Exception\b`
	warnWords  = `\b(WARN|WARNING)\b|level"?[=:] ?"?warn`

	clustersShown = 6
	templateShown = 120
	clusterMany   = 10 // errors of one form that make it a high finding
)

func clustererWants(t *talk) []want {
	errors := askLogs(t, errorWords, "error lines")
	wants := []want{askLogs(t, fatalWords, "fatal lines"), errors, askWarnings(t)}
	text, ok := t.result(errors)
	if !ok {
		return wants
	}
	if rest := unseenLogs(t, parseGrep(text)); len(rest) > 0 {
		wants = append(wants, want{name: toolGrep, label: "error lines of the other logs", args: map[string]any{"pattern": errorWords, "glob": anyOf(rest)}})
	}
	return wants
}

// unseenLogs are the logs that a search cut at its first lines did not come to.
func unseenLogs(t *talk, s search) []string {
	if !s.partial {
		return nil
	}
	var rest []string
	for _, l := range t.hints.Logs {
		if globSafe(l) && !slices.ContainsFunc(s.hits, func(h hit) bool { return h.path == l }) {
			rest = append(rest, l)
		}
	}
	return rest
}

// askWarnings looks at warnings only where they cannot be many beside the errors.
func askWarnings(t *talk) want {
	w := askLogs(t, warnWords+`.*\b(fail|timeout|retry|refused|lost|slow|full|denied|expired|exceed)`, "warnings about failures")
	w.quiet = true
	return w
}

// cluster is all lines of one template.
type cluster struct {
	template string
	hits     []hit
	severity severity
	partial  bool // there may be more: the search was cut
}

func clustererAnswer(t *talk) answer {
	var a answer
	var all []cluster
	seen := map[string]bool{}
	lines := 0
	for i, w := range clustererWants(t) {
		text, ok := t.result(w)
		if !ok {
			continue
		}
		s := parseGrep(text)
		told(&a, w.label, s)
		var fresh []hit
		for _, h := range s.hits {
			if key := fmt.Sprint(h.path, h.line); !seen[key] && !ours(h.path, defaultReport) {
				seen[key] = true
				fresh = append(fresh, h)
			}
		}
		lines += len(fresh)
		all = append(all, clusters(fresh, []severity{high, medium, low, medium}[i], s.partial)...)
	}
	slices.SortStableFunc(all, func(x, y cluster) int {
		if x.severity != y.severity {
			return x.severity.rank() - y.severity.rank()
		}
		return len(y.hits) - len(x.hits)
	})
	a.Summary = fmt.Sprintf("clusterer: %s of %s", plural(lines, "failing line"), plural(len(all), "template"))
	for i, c := range all {
		if i == clustersShown {
			a.limit("error clusters: %d rarer ones not shown", len(all)-i)
			break
		}
		a.add(c.finding())
	}
	if lines > 0 {
		a.fact(factTemplate, "%s read, %s", plural(lines, "line"), plural(len(all), "template"))
	}
	return a
}

var serious = regexp.MustCompile(`(?i)panic|fatal|out of ?memory|segfault|corrupt|data loss|deadlock`)

func clusters(hits []hit, sev severity, partial bool) []cluster {
	index := map[string]int{}
	var all []cluster
	for _, h := range hits {
		tpl := templateOf(h.text)
		i, ok := index[tpl]
		if !ok {
			i = len(all)
			index[tpl] = i
			all = append(all, cluster{template: tpl, severity: sev, partial: partial})
			if serious.MatchString(h.text) && sev == medium {
				all[i].severity = high
			}
		}
		all[i].hits = append(all[i].hits, h)
	}
	for i := range all {
		if len(all[i].hits) >= clusterMany && all[i].severity == medium {
			all[i].severity = high
		}
	}
	return all
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
	often := fmt.Sprintf("%d×", len(c.hits))
	if c.partial {
		often = "at least " + often
	}
	f := finding{Kind: kindCluster, Severity: c.severity, Title: often + ": " + shorten(c.template, templateShown)}
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
	} else {
		f.Detail = "seen once"
	}
	return f
}
