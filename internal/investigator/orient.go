package investigator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// The questions of a reader who opens these logs for the first time.

// sampledLog is a log as a few lines of it show it.
type sampledLog struct {
	path  string
	total int
	first []fileLine
	lines []timedLine // evenly spread, those with a time
}

const (
	rateLines = 50 // lines from which on a log has a rate
	formShown = 90 // of the usual line
)

func reportOverview(logs []sampledLog, a *agentAnswer) {
	reportLogForms(logs, a)
	reportPeriod(logs, a)
	reportRoutineLines(logs, a)
	reportRate(logs, a)
}

var (
	jsonLine   = lazyregexp.New(`^\s*\{.*"`)
	accessLine = lazyregexp.New(`" [1-5]\d\d \d+`)
	syslogLine = lazyregexp.New(`^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d `)
)

// formOf names the form of a log line.
func formOf(line string) string {
	switch {
	case jsonLine.MatchString(line):
		return "JSON"
	case syslogLine.MatchString(line):
		return "syslog, no year"
	case accessLine.MatchString(line):
		return "access log"
	}
	if _, ok := parseTimestamp(line); ok {
		return "text with times"
	}
	return "text"
}

func reportLogForms(logs []sampledLog, a *agentAnswer) {
	f := finding{Kind: kindLayout, Severity: info}
	var parts []string
	for _, l := range logs {
		if len(l.first) == 0 || !isCitable(l.first[0].text) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s, %s (%s)", l.path, formatCount(l.total, "line"), formOf(l.first[0].text)))
		f.Evidence = append(f.Evidence, l.first[0].asEvidence())
	}
	f.Title = "The logs: " + strings.Join(parts, "; ")
	a.addFinding(f)
}

// reportPeriod adds the time span that the logs cover. Logs whose times lack a year cannot be
// compared with logs whose times have one.
func reportPeriod(logs []sampledLog, a *agentAnswer) {
	var from, to timedLine
	named := 0
	for _, l := range logs {
		if len(l.lines) < 2 {
			continue
		}
		first, last := l.lines[0], l.lines[len(l.lines)-1]
		if !isCitable(first.text) || !isCitable(last.text) || named > 0 && (first.at.Year() == 0) != (from.at.Year() == 0) {
			continue
		}
		if named == 0 || first.at.Before(from.at) {
			from = first
		}
		if named == 0 || last.at.After(to.at) {
			to = last
		}
		named++
	}
	if named == 0 || !to.at.After(from.at) {
		return
	}
	of := formatCount(named, "log")
	if named == 1 {
		of = from.path
	}
	a.addFinding(finding{Kind: kindPeriod, Severity: info, Title: fmt.Sprintf("From %s to %s: %s in %s", formatTime(from.at), formatTime(to.at), formatDuration(to.at.Sub(from.at)), of),
		Evidence: []evidence{from.asEvidence(), to.asEvidence()}})
}

// reportRoutineLines reports what most lines are about, and so which ones a reader can skip.
func reportRoutineLines(logs []sampledLog, a *agentAnswer) {
	byForm := map[string][]fileLine{}
	n := 0
	for _, l := range logs {
		for _, h := range l.lines {
			n++
			if isCitable(h.text) {
				form := templateOf(h.text)
				byForm[form] = append(byForm[form], h.fileLine)
			}
		}
	}
	most := ""
	for form, hits := range byForm {
		if len(hits) > len(byForm[most]) || len(hits) == len(byForm[most]) && form < most {
			most = form
		}
	}
	hits := byForm[most]
	if len(hits) < 2 {
		return
	}
	f := finding{Kind: kindRoutine, Severity: info, Title: fmt.Sprintf("The usual line (%d of %d read): %s", len(hits), n, clip.Marked(most, formShown, "…"))}
	for _, h := range spreadByFile(hits)[:min(len(hits), 2)] {
		f.Evidence = append(f.Evidence, h.asEvidence())
	}
	a.addFinding(f)
}

// reportRate reports how fast the busiest log grows, if no burst was reported.
func reportRate(logs []sampledLog, a *agentAnswer) {
	if slices.ContainsFunc(a.Findings, func(f finding) bool { return f.Kind == kindBurst }) {
		return
	}
	var best sampleGap
	var usual time.Duration
	for _, l := range logs {
		g, each, ok := l.fastestSegment()
		if ok && l.total >= rateLines && g.elapsed() > 0 && (best.to.line == 0 || timePerLine(g) < timePerLine(best)) {
			best, usual = g, each
		}
	}
	if best.to.line == 0 {
		return
	}
	a.addFinding(finding{Kind: kindRate, Severity: info, Title: fmt.Sprintf("%s: usually %s, at most %s between the lines read", best.from.path, formatRate(usual), formatRate(timePerLine(best))),
		Evidence: []evidence{best.from.asEvidence(), best.to.asEvidence()}})
}

// formatRate returns how many lines come in a unit of time when each takes so long.
func formatRate(each time.Duration) string {
	for _, unit := range []struct {
		long time.Duration
		name string
	}{{time.Minute, "a minute"}, {time.Hour, "an hour"}} {
		if n := unit.long / max(each, time.Microsecond); n >= 2 {
			return formatCount(int(n), "line") + " " + unit.name
		}
	}
	return formatCount(int(24*time.Hour/max(each, time.Microsecond)), "line") + " a day"
}
