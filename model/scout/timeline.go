package scout

import (
	"fmt"
	"slices"
	"time"
)

// timeline finds gaps, bursts and restarts. It reads few lines of each log,
// evenly spread, and looks closer where the time between two of them is odd.
var timeline = job{name: "timeline", wants: timelineWants, answer: timelineAnswer}

const (
	restartWords = `(?i)\b(starting (up|server|service|application|node)|server (is )?(starting|started|ready)|started (server|service|application)|shutting down|shutdown complete|listening on|restart(ed|ing)|SIGTERM|SIGKILL|exited with|booting)\b`

	timedLogs    = 4  // logs whose times are sampled
	samples      = 8  // lines read of one log
	closerLines  = 24 // a segment this short is read line by line
	gapMin       = 5 * time.Minute
	gapFactor    = 8 // times the usual time between samples
	burstFactor  = 8
	restartsMany = 3
)

func askLine(p string, line, n int) want {
	return want{name: toolRead, args: map[string]any{"path": p, "offset": line, "limit": n}, label: "lines of " + p, quiet: true}
}

func askFirst(p string) want {
	w := askFirstLine(p)
	w.label = "first line of " + p
	return w
}

func timedPaths(t *talk) []string {
	paths := t.hints.Logs
	return paths[:min(len(paths), timedLogs)]
}

func timelineWants(t *talk) []want {
	wants := []want{askLogs(t, restartWords, "starts and stops")}
	for _, p := range timedPaths(t) {
		wants = append(wants, askFirst(p))
	}
	for _, p := range timedPaths(t) {
		wants = append(wants, sampleWants(t, p)...)
	}
	for _, p := range timedPaths(t) {
		if g, ok := widest(sampled(t, p)); ok {
			wants = append(wants, closer(p, g)...)
		}
	}
	return wants
}

// sampled are the evenly spread lines alone: a look closer is taken once.
func sampled(t *talk, p string) []timed {
	even := map[int]bool{1: true}
	for _, w := range sampleWants(t, p) {
		even[w.args["offset"].(int)] = true
	}
	return slices.DeleteFunc(readSamples(t, p), func(l timed) bool { return !even[l.line] })
}

func sampleWants(t *talk, p string) []want {
	total := parseRead(p, firstResult(t, askFirst(p))).total
	var wants []want
	last := 1
	for i := 1; i < samples && total > 1; i++ {
		if line := 1 + i*(total-1)/(samples-1); line > last {
			wants = append(wants, askLine(p, line, 1))
			last = line
		}
	}
	return wants
}

// closer reads more lines between the two ends of a wide gap.
func closer(p string, g gap) []want {
	n := g.to.line - g.from.line
	if n <= 1 {
		return nil
	}
	if n <= closerLines {
		return []want{askLine(p, g.from.line+1, n-1)}
	}
	var wants []want
	for i := 1; i < samples; i++ {
		wants = append(wants, askLine(p, g.from.line+i*n/samples, 1))
	}
	return wants
}

// timed is a line with its time.
type timed struct {
	hit
	at time.Time
}

// readSamples is every line of p that was read and has a time, in file order.
func readSamples(t *talk, p string) []timed {
	var all []timed
	for _, ex := range t.exchanges {
		if ex.name != toolRead || ex.args["path"] != p || ex.failed {
			continue
		}
		for _, h := range parseRead(p, ex.text).lines {
			if at, ok := stampOf(h.text); ok {
				all = append(all, timed{h, at})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y timed) int { return x.line - y.line })
	return slices.CompactFunc(all, func(x, y timed) bool { return x.line == y.line })
}

// gap is two neighbouring samples.
type gap struct{ from, to timed }

func (g gap) wide() time.Duration { return g.to.at.Sub(g.from.at) }
func (g gap) lines() int          { return g.to.line - g.from.line }

func gapsOf(lines []timed) []gap {
	var gaps []gap
	for i := 1; i < len(lines); i++ {
		gaps = append(gaps, gap{lines[i-1], lines[i]})
	}
	return gaps
}

// widest is the gap with the most time a line, if it stands out.
func widest(lines []timed) (gap, bool) {
	gaps := gapsOf(lines)
	if len(gaps) < 3 {
		return gap{}, false
	}
	usual := typical(gaps)
	best := slices.MaxFunc(gaps, func(a, b gap) int { return int(a.wide()/time.Second) - int(b.wide()/time.Second) })
	return best, best.wide() >= gapMin && perLine(best) >= usual*gapFactor
}

func perLine(g gap) time.Duration { return g.wide() / time.Duration(max(g.lines(), 1)) }

// typical is the median time a line.
func typical(gaps []gap) time.Duration {
	var each []time.Duration
	for _, g := range gaps {
		each = append(each, perLine(g))
	}
	slices.Sort(each)
	return max(each[len(each)/2], time.Millisecond)
}

func timelineAnswer(t *talk) answer {
	var a answer
	for _, p := range timedPaths(t) {
		total := parseRead(p, firstResult(t, askFirst(p))).total
		lines := readSamples(t, p)
		if total > 0 && len(lines) < 2 {
			a.fact(factLog, "`%s`: %s lines", p, thousands(int64(total)))
			a.limit("%s: no timestamps that scout can read", p)
			continue
		}
		if len(lines) < 2 {
			continue
		}
		first, last := lines[0], lines[len(lines)-1]
		a.fact(factLog, "`%s`: %s lines, %s to %s", p, thousands(int64(total)), first.at.Format(time.DateTime), last.at.Format(time.DateTime))
		times(p, lines, &a)
	}
	if n := len(t.hints.Logs) - timedLogs; n > 0 {
		a.limit("timeline: %s not sampled", plural(n, "smaller log"))
	}
	restarts(t, &a)
	a.Summary = fmt.Sprintf("timeline: %s sampled at %d lines each", plural(len(timedPaths(t)), "log"), samples)
	return a
}

func times(p string, lines []timed, a *answer) {
	gaps := gapsOf(lines)
	if g, ok := widest(lines); ok && quotable(g.from.text) && quotable(g.to.text) {
		title := fmt.Sprintf("%s of silence between two lines of %s", span(g.wide()), p)
		if g.lines() > 1 {
			title = fmt.Sprintf("%s pass within %d lines of %s", span(g.wide()), g.lines(), p)
		}
		a.add(finding{Kind: kindGap, Severity: medium, Title: title,
			Evidence: []evidence{g.from.evidence(), g.to.evidence()}})
	}
	if len(gaps) < 3 {
		return
	}
	usual := typical(gaps)
	for _, g := range gaps {
		if g.wide() < 0 && quotable(g.from.text) && quotable(g.to.text) {
			a.add(finding{Kind: kindGap, Severity: low, Title: fmt.Sprintf("Time runs backwards by %s in %s", span(-g.wide()), p),
				Detail: "several writers, a clock that was set, or a file that was joined", Evidence: []evidence{g.from.evidence(), g.to.evidence()}})
			break
		}
	}
	fast := slices.MinFunc(gaps, func(x, y gap) int { return int(perLine(x) - perLine(y)) })
	if fast.wide() >= 0 && fast.lines() >= samples*2 && perLine(fast)*burstFactor <= usual && quotable(fast.from.text) && quotable(fast.to.text) {
		a.add(finding{Kind: kindBurst, Severity: medium,
			Title:    fmt.Sprintf("%d lines in %s in %s, more than %d× the usual rate", fast.lines(), span(fast.wide()), p, burstFactor),
			Evidence: []evidence{fast.from.evidence(), fast.to.evidence()}})
	}
}

func restarts(t *talk, a *answer) {
	text, ok := t.result(askLogs(t, restartWords, ""))
	if !ok {
		return
	}
	s := parseGrep(text)
	told(a, "starts and stops", s)
	byFile := map[string][]hit{}
	var order []string
	for _, h := range s.hits {
		if byFile[h.path] == nil {
			order = append(order, h.path)
		}
		if quotable(h.text) {
			byFile[h.path] = append(byFile[h.path], h)
		}
	}
	for _, p := range order {
		hits := byFile[p]
		if len(hits) < 2 {
			continue
		}
		sev := low
		if len(hits) >= restartsMany {
			sev = medium
		}
		a.add(finding{Kind: kindRestart, Severity: sev, Title: fmt.Sprintf("%s about starting or stopping in %s", plural(len(hits), "line"), p),
			Evidence: []evidence{hits[0].evidence(), hits[len(hits)-1].evidence()}})
	}
}
