package investigator

import (
	"fmt"
	"slices"
	"time"
)

// timeline finds gaps, bursts and restarts. It reads few lines of each log,
// evenly spread, and looks closer where the time between two of them is odd.
var timeline = job{name: "timeline", wants: timelineWants, answer: timelineAnswer, bytes: auditBytesMax}

const (
	restartWords = `(?i)\b(?:starting (?:up|server|service|application|node)|server (?:is )?(?:starting|started|ready)|started (?:server|service|application)|shutting down|shutdown complete|listening on|restart(?:ed|ing)|SIGTERM|SIGKILL|exited, code|exited with|booting|Linux version \d)`

	timedLogs    = 3 // logs whose times are sampled
	samples      = 8 // lines read of one log,
	samplesMany  = 5 // and of each of several
	closerSteps  = 2 // looks into the segment where time is missing
	gapMin       = 5 * time.Minute
	gapFactor    = 8 // times the usual time of as many lines
	burstFactor  = 8
	restartsMany = 3

	restartsUsual, restartsRoom = 300, 1400 // see logProbe
)

func askLine(p string, line, n int) want {
	return want{name: toolRead, args: map[string]any{"path": p, "offset": line, "limit": n}, label: "lines of " + p, quiet: true}
}

func askFirst(p string) want {
	return want{name: toolRead, args: map[string]any{"path": p, "limit": 1}, label: "first line of " + p}
}

func timedPaths(t *talk) []string {
	paths := t.hints.Logs
	return paths[:min(len(paths), timedLogs)]
}

func timelineWants(t *talk) []want {
	wants := restartProbe(t).run(t).wants
	for _, p := range timedPaths(t) {
		wants = append(wants, askFirst(p))
	}
	for _, p := range timedPaths(t) {
		wants = append(wants, sampleWants(t, p)...)
	}
	closer, _ := suspect(t)
	return append(wants, closer...)
}

func restartProbe(t *talk) probe {
	return logProbe(t, restartWords, "starts and stops", restartsUsual, restartsRoom)
}

func sampleWants(t *talk, p string) []want {
	total := parseRead(p, firstResult(t, askFirst(p))).total
	n := samples
	if len(timedPaths(t)) > 1 {
		n = samplesMany
	}
	var wants []want
	last := 1
	for i := 1; i < n && total > 1; i++ {
		if line := 1 + i*(total-1)/(n-1); line > last {
			wants = append(wants, askLine(p, line, 1))
			last = line
		}
	}
	return wants
}

// even are the evenly spread lines of a log, and those of the given looks into it.
func even(t *talk, p string, looks []want) []timed {
	return readSamples(p, t, append(append([]want{askFirst(p)}, sampleWants(t, p)...), looks...))
}

// suspect looks closer where most time is missing, in the one log with the largest gap: the
// other logs cover the same hour. It returns the looks and their log.
func suspect(t *talk) (looks []want, log string) {
	var worst gap
	var usual, most time.Duration
	for _, p := range timedPaths(t) {
		lines := even(t, p, nil)
		if len(lines) != len(sampleWants(t, p))+1 || len(lines) < 4 {
			continue // not all read yet, or lines without a time
		}
		each := typical(gapsOf(lines))
		if g, lost := lossy(gapsOf(lines), each); lost >= gapMin && lost > most {
			worst, usual, most, log = g, each, lost, p
		}
	}
	for range closerSteps {
		if log == "" || worst.lines() <= 1 {
			break
		}
		more := closer(log, worst)
		looks = append(looks, more...)
		inside := slices.DeleteFunc(even(t, log, looks), func(l timed) bool { return l.line < worst.from.line || l.line > worst.to.line })
		g, lost := lossy(gapsOf(inside), usual)
		if lost < gapMin || g.lines() >= worst.lines() {
			break
		}
		worst = g
	}
	return looks, log
}

// lossy returns the gap with the most time beyond what its lines usually take.
func lossy(gaps []gap, usual time.Duration) (worst gap, most time.Duration) {
	for _, g := range gaps {
		if lost := g.wide() - usual*time.Duration(g.lines()); lost > most {
			worst, most = g, lost
		}
	}
	return worst, most
}

// closer reads more lines between the two ends of a wide gap.
func closer(p string, g gap) []want {
	n := g.to.line - g.from.line
	if n <= samples {
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

// readSamples is every line of p that these looks showed and that has a time,
// in file order.
func readSamples(p string, t *talk, looks []want) []timed {
	var all []timed
	for _, w := range looks {
		for _, h := range parseRead(p, firstResult(t, w)).lines {
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
	looks, closely := suspect(t)
	var logs []readLog
	for _, p := range timedPaths(t) {
		total := parseRead(p, firstResult(t, askFirst(p))).total
		if total == 0 {
			continue
		}
		l := readLog{path: p, total: total, first: parseRead(p, firstResult(t, askFirst(p))).lines, lines: even(t, p, nil)}
		logs = append(logs, l)
		if len(l.lines) < 2 {
			a.limit("%s: no times that scout can read", p)
			continue
		}
		bursts(l, &a)
		backwards(l, &a)
		if p == closely {
			silence(l, even(t, p, looks), &a)
		}
	}
	if n := len(t.hints.Logs) - timedLogs; n > 0 {
		a.limit("timeline: %s not sampled", plural(n, "smaller log"))
	}
	restarts(t, &a)
	orient(logs, &a)
	a.Summary = fmt.Sprintf("timeline: %s sampled at a few lines each", plural(len(timedPaths(t)), "log"))
	return a
}

// silence reports the widest gap of a log that was examined closely.
func silence(l readLog, lines []timed, a *answer) {
	usual := typical(gapsOf(l.lines))
	g, lost := lossy(gapsOf(lines), usual)
	if lost < gapMin || perLine(g) < usual*gapFactor || !quotable(g.from.text) || !quotable(g.to.text) {
		return
	}
	title := fmt.Sprintf("%s of silence between two lines of %s", span(g.wide()), l.path)
	if g.lines() > 1 {
		title = fmt.Sprintf("%s pass within %d lines of %s", span(g.wide()), g.lines(), l.path)
	}
	a.add(finding{Kind: kindGap, Severity: medium, Title: title, Evidence: []evidence{g.from.evidence(), g.to.evidence()}})
}

func backwards(l readLog, a *answer) {
	for _, g := range gapsOf(l.lines) {
		if g.wide() < 0 && quotable(g.from.text) && quotable(g.to.text) {
			a.add(finding{Kind: kindGap, Severity: low, Title: fmt.Sprintf("Time runs backwards by %s in %s", span(-g.wide()), l.path),
				Detail: "several writers, a clock that was set, or a file that was joined", Evidence: []evidence{g.from.evidence(), g.to.evidence()}})
			return
		}
	}
}

// fastest is the segment with most lines in its time; ok only for a log with
// enough lines to have a rate.
func (l readLog) fastest() (g gap, usual time.Duration, ok bool) {
	gaps := gapsOf(l.lines)
	if len(gaps) < 3 {
		return gap{}, 0, false
	}
	g = slices.MinFunc(gaps, func(x, y gap) int { return int(perLine(x) - perLine(y)) })
	return g, typical(gaps), g.wide() >= 0 && g.lines() >= samples*2 && quotable(g.from.text) && quotable(g.to.text)
}

func bursts(l readLog, a *answer) {
	if g, usual, ok := l.fastest(); ok && perLine(g)*burstFactor <= usual {
		a.add(finding{Kind: kindBurst, Severity: medium,
			Title:    fmt.Sprintf("%d lines in %s in %s, more than %d× the usual rate", g.lines(), span(g.wide()), l.path, burstFactor),
			Evidence: []evidence{g.from.evidence(), g.to.evidence()}})
	}
}

func restarts(t *talk, a *answer) {
	p := restartProbe(t).run(t)
	if !p.ok {
		return
	}
	toldPart(a, "starts and stops", p)
	files := map[string]int{}
	var hits []hit
	for _, h := range p.got.hits {
		if quotable(h.text) && h.line > 1 { // a log that begins with a start is no restart
			files[h.path]++
			hits = append(hits, h)
		}
	}
	f := finding{Kind: kindRestart, Severity: low, Title: fmt.Sprintf("%s× a line about starting or stopping, in %s", estimate(len(hits), p.k), plural(len(files), "file"))}
	for _, n := range files {
		if n*p.k >= restartsMany {
			f.Severity = medium
		}
	}
	if f.Severity == low {
		f.Detail = "what ran before it began again"
	}
	for _, h := range spread(hits) {
		f.Evidence = append(f.Evidence, h.evidence())
	}
	a.add(f)
}
