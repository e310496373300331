package investigator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The questions of a reader who opens these logs for the first time.

// readLog is a log as a few lines of it show it.
type readLog struct {
	path  string
	total int
	first []hit
	lines []timed // evenly spread, those with a time
}

const (
	rateLines = 50 // lines from which on a log has a rate
	formShown = 90 // of the usual line
)

func orient(logs []readLog, a *answer) {
	layout(logs, a)
	period(logs, a)
	routineLines(logs, a)
	rate(logs, a)
}

var (
	jsonLine   = regexp.MustCompile(`^\s*\{.*"`)
	accessLine = regexp.MustCompile(`" [1-5]\d\d \d+`)
	syslogLine = regexp.MustCompile(`^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d `)
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
	if _, ok := stampOf(line); ok {
		return "text with times"
	}
	return "text"
}

func layout(logs []readLog, a *answer) {
	f := finding{Kind: kindLayout, Severity: info}
	var parts []string
	for _, l := range logs {
		if len(l.first) == 0 || !quotable(l.first[0].text) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s, %s (%s)", l.path, plural(l.total, "line"), formOf(l.first[0].text)))
		f.Evidence = append(f.Evidence, l.first[0].evidence())
	}
	f.Title = "The logs: " + strings.Join(parts, "; ")
	a.add(f)
}

// period adds the time span that the logs cover. Logs whose times lack a year cannot be
// compared with logs whose times have one.
func period(logs []readLog, a *answer) {
	var from, to timed
	named := 0
	for _, l := range logs {
		if len(l.lines) < 2 {
			continue
		}
		first, last := l.lines[0], l.lines[len(l.lines)-1]
		if !quotable(first.text) || !quotable(last.text) || named > 0 && (first.at.Year() == 0) != (from.at.Year() == 0) {
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
	of := plural(named, "log")
	if named == 1 {
		of = from.path
	}
	a.add(finding{Kind: kindPeriod, Severity: info, Title: fmt.Sprintf("From %s to %s: %s in %s", clock(from.at), clock(to.at), span(to.at.Sub(from.at)), of),
		Evidence: []evidence{from.evidence(), to.evidence()}})
}

// routineLines reports what most lines are about, and so which ones a reader can skip.
func routineLines(logs []readLog, a *answer) {
	byForm := map[string][]hit{}
	n := 0
	for _, l := range logs {
		for _, h := range l.lines {
			n++
			if quotable(h.text) {
				form := templateOf(h.text)
				byForm[form] = append(byForm[form], h.hit)
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
	f := finding{Kind: kindRoutine, Severity: info, Title: fmt.Sprintf("The usual line (%d of %d read): %s", len(hits), n, shorten(most, formShown))}
	for _, h := range spread(hits)[:min(len(hits), 2)] {
		f.Evidence = append(f.Evidence, h.evidence())
	}
	a.add(f)
}

// rate reports how fast the busiest log grows, if no burst was reported.
func rate(logs []readLog, a *answer) {
	if slices.ContainsFunc(a.Findings, func(f finding) bool { return f.Kind == kindBurst }) {
		return
	}
	var best gap
	var usual time.Duration
	for _, l := range logs {
		g, each, ok := l.fastest()
		if ok && l.total >= rateLines && g.wide() > 0 && (best.to.line == 0 || perLine(g) < perLine(best)) {
			best, usual = g, each
		}
	}
	if best.to.line == 0 {
		return
	}
	a.add(finding{Kind: kindRate, Severity: info, Title: fmt.Sprintf("%s: usually %s, at most %s between the lines read", best.from.path, often(usual), often(perLine(best))),
		Evidence: []evidence{best.from.evidence(), best.to.evidence()}})
}

// often returns how many lines come in a unit of time when each takes so long.
func often(each time.Duration) string {
	for _, unit := range []struct {
		long time.Duration
		name string
	}{{time.Minute, "a minute"}, {time.Hour, "an hour"}} {
		if n := unit.long / max(each, time.Microsecond); n >= 2 {
			return plural(int(n), "line") + " " + unit.name
		}
	}
	return plural(int(24*time.Hour/max(each, time.Microsecond)), "line") + " a day"
}
