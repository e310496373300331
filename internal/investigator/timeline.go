package investigator

import (
	"fmt"
	"slices"
	"time"
)

// timeline finds gaps, bursts and restarts. It reads few lines of each log,
// evenly spread, and looks closer where the time between two of them is odd.
var timeline = childJob{name: "timeline", listCalls: timelineWants, buildAnswer: timelineAnswer, answerMax: auditBytesMax}

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
	restartsRead = 14 // lines
)

func askLine(p string, line, n int) wantedCall {
	return wantedCall{name: toolRead, args: map[string]any{"path": p, "offset": line, "limit": n}, label: "lines of " + p, quiet: true}
}

func askFirst(p string) wantedCall {
	return wantedCall{name: toolRead, args: map[string]any{"path": p, "limit": 1}, label: "first line of " + p}
}

func timedPaths(t *conversation) []string {
	paths := t.hints.Logs
	return paths[:min(len(paths), timedLogs)]
}

func timelineWants(t *conversation) []wantedCall {
	wants := []wantedCall{askRestarts(t)}
	for _, p := range timedPaths(t) {
		wants = append(wants, askFirst(p))
	}
	for _, p := range timedPaths(t) {
		wants = append(wants, sampleWants(t, p)...)
	}
	closer, _ := narrowLargestGap(t)
	return append(wants, closer...)
}

func askRestarts(t *conversation) wantedCall {
	return askLogs(t, restartWords, "starts and stops", restartsRead)
}

func sampleWants(t *conversation, p string) []wantedCall {
	total := parseRead(p, firstResult(t, askFirst(p))).total
	n := samples
	if len(timedPaths(t)) > 1 {
		n = samplesMany
	}
	var wants []wantedCall
	last := 1
	for i := 1; i < n && total > 1; i++ {
		if line := 1 + i*(total-1)/(n-1); line > last {
			wants = append(wants, askLine(p, line, 1))
			last = line
		}
	}
	return wants
}

// evenSamples are the evenly spread lines of a log, and those of the given looks into it.
func evenSamples(t *conversation, p string, looks []wantedCall) []timedLine {
	return readSamples(p, t, append(append([]wantedCall{askFirst(p)}, sampleWants(t, p)...), looks...))
}

// narrowLargestGap looks closer where most time is missing, in the one log with the largest gap: the
// other logs cover the same hour. It returns the looks and their log.
func narrowLargestGap(t *conversation) (looks []wantedCall, log string) {
	var worst sampleGap
	var usual, most time.Duration
	for _, p := range timedPaths(t) {
		lines := evenSamples(t, p, nil)
		if len(lines) != len(sampleWants(t, p))+1 || len(lines) < 4 {
			continue // not all read yet, or lines without a time
		}
		each := medianLineTime(gapsBetween(lines))
		if g, lost := largestLoss(gapsBetween(lines), each); lost >= gapMin && lost > most {
			worst, usual, most, log = g, each, lost, p
		}
	}
	for range closerSteps {
		if log == "" || worst.lineCount() <= 1 {
			break
		}
		more := sampleInside(log, worst)
		looks = append(looks, more...)
		inside := slices.DeleteFunc(evenSamples(t, log, looks), func(l timedLine) bool { return l.line < worst.from.line || l.line > worst.to.line })
		g, lost := largestLoss(gapsBetween(inside), usual)
		if lost < gapMin || g.lineCount() >= worst.lineCount() {
			break
		}
		worst = g
	}
	return looks, log
}

// largestLoss returns the gap with the most time beyond what its lines usually take.
func largestLoss(gaps []sampleGap, usual time.Duration) (worst sampleGap, most time.Duration) {
	for _, g := range gaps {
		if lost := g.elapsed() - usual*time.Duration(g.lineCount()); lost > most {
			worst, most = g, lost
		}
	}
	return worst, most
}

// sampleInside reads more lines between the two ends of a wide gap.
func sampleInside(p string, g sampleGap) []wantedCall {
	n := g.to.line - g.from.line
	if n <= samples {
		return []wantedCall{askLine(p, g.from.line+1, n-1)}
	}
	var wants []wantedCall
	for i := 1; i < samples; i++ {
		wants = append(wants, askLine(p, g.from.line+i*n/samples, 1))
	}
	return wants
}

// timedLine is a line with its time.
type timedLine struct {
	fileLine
	at time.Time
}

// readSamples is every line of p that these looks showed and that has a time,
// in file order.
func readSamples(p string, t *conversation, looks []wantedCall) []timedLine {
	var all []timedLine
	for _, w := range looks {
		for _, h := range parseRead(p, firstResult(t, w)).lines {
			if at, ok := parseTimestamp(h.text); ok {
				all = append(all, timedLine{h, at})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y timedLine) int { return x.line - y.line })
	return slices.CompactFunc(all, func(x, y timedLine) bool { return x.line == y.line })
}

// sampleGap is two neighbouring samples.
type sampleGap struct{ from, to timedLine }

func (g sampleGap) elapsed() time.Duration { return g.to.at.Sub(g.from.at) }
func (g sampleGap) lineCount() int         { return g.to.line - g.from.line }

func gapsBetween(lines []timedLine) []sampleGap {
	var gaps []sampleGap
	for i := 1; i < len(lines); i++ {
		gaps = append(gaps, sampleGap{lines[i-1], lines[i]})
	}
	return gaps
}

func timePerLine(g sampleGap) time.Duration {
	return g.elapsed() / time.Duration(max(g.lineCount(), 1))
}

// medianLineTime is the median time a line.
func medianLineTime(gaps []sampleGap) time.Duration {
	var each []time.Duration
	for _, g := range gaps {
		each = append(each, timePerLine(g))
	}
	slices.Sort(each)
	return max(each[len(each)/2], time.Millisecond)
}

func timelineAnswer(t *conversation) agentAnswer {
	var a agentAnswer
	looks, closely := narrowLargestGap(t)
	var logs []sampledLog
	for _, p := range timedPaths(t) {
		total := parseRead(p, firstResult(t, askFirst(p))).total
		if total == 0 {
			continue
		}
		l := sampledLog{path: p, total: total, first: parseRead(p, firstResult(t, askFirst(p))).lines, lines: evenSamples(t, p, nil)}
		logs = append(logs, l)
		if len(l.lines) < 2 {
			a.addLimit("%s: no times that scout can read", p)
			continue
		}
		reportBursts(l, &a)
		reportBackwardTime(l, &a)
		if p == closely {
			reportSilence(l, evenSamples(t, p, looks), &a)
		}
	}
	if n := len(t.hints.Logs) - timedLogs; n > 0 {
		a.addLimit("timeline: %s not sampled", formatCount(n, "smaller log"))
	}
	reportRestarts(t, &a)
	reportOverview(logs, &a)
	a.Summary = fmt.Sprintf("timeline: %s sampled at a few lines each", formatCount(len(timedPaths(t)), "log"))
	return a
}

// reportSilence reports the widest gap of a log that was examined closely.
func reportSilence(l sampledLog, lines []timedLine, a *agentAnswer) {
	usual := medianLineTime(gapsBetween(l.lines))
	g, lost := largestLoss(gapsBetween(lines), usual)
	if lost < gapMin || timePerLine(g) < usual*gapFactor || !isCitable(g.from.text) || !isCitable(g.to.text) {
		return
	}
	title := fmt.Sprintf("%s of silence between two lines of %s", formatDuration(g.elapsed()), l.path)
	if g.lineCount() > 1 {
		title = fmt.Sprintf("%s pass within %d lines of %s", formatDuration(g.elapsed()), g.lineCount(), l.path)
	}
	a.addFinding(finding{Kind: kindGap, Severity: medium, Title: title, Evidence: []evidence{g.from.asEvidence(), g.to.asEvidence()}})
}

func reportBackwardTime(l sampledLog, a *agentAnswer) {
	for _, g := range gapsBetween(l.lines) {
		if g.elapsed() < 0 && isCitable(g.from.text) && isCitable(g.to.text) {
			a.addFinding(finding{Kind: kindGap, Severity: low, Title: fmt.Sprintf("Time runs backwards by %s in %s", formatDuration(-g.elapsed()), l.path),
				Detail: "several writers, a clock that was set, or a file that was joined", Evidence: []evidence{g.from.asEvidence(), g.to.asEvidence()}})
			return
		}
	}
}

// fastestSegment is the segment with most lines in its time; ok only for a log with
// enough lines to have a rate.
func (l sampledLog) fastestSegment() (g sampleGap, usual time.Duration, ok bool) {
	gaps := gapsBetween(l.lines)
	if len(gaps) < 3 {
		return sampleGap{}, 0, false
	}
	g = slices.MinFunc(gaps, func(x, y sampleGap) int { return int(timePerLine(x) - timePerLine(y)) })
	return g, medianLineTime(gaps), g.elapsed() >= 0 && g.lineCount() >= samples*2 && isCitable(g.from.text) && isCitable(g.to.text)
}

func reportBursts(l sampledLog, a *agentAnswer) {
	if g, usual, ok := l.fastestSegment(); ok && timePerLine(g)*burstFactor <= usual {
		a.addFinding(finding{Kind: kindBurst, Severity: medium,
			Title:    fmt.Sprintf("%d lines in %s in %s, more than %d× the usual rate", g.lineCount(), formatDuration(g.elapsed()), l.path, burstFactor),
			Evidence: []evidence{g.from.asEvidence(), g.to.asEvidence()}})
	}
}

func reportRestarts(t *conversation, a *agentAnswer) {
	s, ok := t.grepOf(askRestarts(t))
	if !ok {
		return
	}
	addSearchLimits(a, "starts and stops", s)
	files := map[string]int{}
	var hits []fileLine
	for _, h := range s.hits {
		if isCitable(h.text) && h.line > 1 { // a log that begins with a start is no restart
			files[h.path]++
			hits = append(hits, h)
		}
	}
	f := finding{Kind: kindRestart, Severity: low, Title: fmt.Sprintf("%s a line about starting or stopping, in %s", formatOften(len(hits), s.partial), formatCount(len(files), "file"))}
	for _, n := range files {
		if n >= restartsMany {
			f.Severity = medium
		}
	}
	if f.Severity == low {
		f.Detail = "what ran before it began again"
	}
	for _, h := range spreadByFile(hits) {
		f.Evidence = append(f.Evidence, h.asEvidence())
	}
	a.addFinding(f)
}
