package investigator

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/jsonlog"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// stampForms are the timestamps that log lines begin with or hold in a field.
var stampForms = []struct {
	re     *lazyregexp.Regexp
	layout string
}{
	{lazyregexp.New(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`), "2006-01-02T15:04:05"},
	{lazyregexp.New(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "2006-01-02 15:04:05"},
	{lazyregexp.New(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d`), "2006/01/02 15:04:05"},
	{lazyregexp.New(`\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d`), "02/Jan/2006:15:04:05"},
	{lazyregexp.New(`\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d\b`), "Jan _2 15:04:05"},
	{lazyregexp.New(`\b\d\d:\d\d:\d\d\b`), "15:04:05"},
}

var epochForm = lazyregexp.New(`"(?:ts|time|timestamp|t)"\s*:\s*"?(1\d{9})(?:\.\d+|\d{3})?\b`)

// stampWindow is how far into a line its own timestamp may stand.
const stampWindow = 160

// parseTimestamp reads the time of a log line. Zones are not read: times of one file
// are compared with each other only.
func parseTimestamp(line string) (time.Time, bool) {
	if r, ok := jsonlog.Parse(line); ok && !r.Time.IsZero() {
		return r.Time, true
	}
	line = clip.Prefix(line, min(len(line), stampWindow))
	for _, f := range stampForms {
		if s := f.re.FindString(line); s != "" {
			if at, err := time.Parse(f.layout, s); err == nil {
				return at, true
			}
		}
	}
	if m := epochForm.FindStringSubmatch(line); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			return time.Unix(n, 0).UTC(), true
		}
	}
	return time.Time{}, false
}

// templateMasks replace the parts that differ between two occurrences of one message by a word. The
// order matters: longer forms come first.
var templateMasks = []struct {
	re *lazyregexp.Regexp
	to string
}{
	{lazyregexp.New(`\[masked\]`), "<secret>"},
	{lazyregexp.New(`\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`), "<time>"},
	{lazyregexp.New(`\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?`), "<time>"},
	{lazyregexp.New(`\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d\b`), "<time>"},
	{lazyregexp.New(`\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b`), "<time>"},
	{lazyregexp.New(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "<id>"},
	{lazyregexp.New(`\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b`), "<ip>"},
	{lazyregexp.New(`\b\d+(?:\.\d+)?(ns|us|µs|ms|s|m|h|B|KB|MB|GB|KiB|MiB|GiB)\b`), "<n>$1"},
	{lazyregexp.New(`\b0x[0-9a-fA-F]+\b`), "<hex>"},
	{lazyregexp.New(`\b(?:[0-9]+[a-fA-F]|[a-fA-F]+[0-9])[0-9a-fA-F]{6,}\b`), "<hex>"},
	{lazyregexp.New(`" ([1-5])\d\d\b`), `" ${1}xx`}, // the status of an access log is its message
	{lazyregexp.New(`\b([A-Za-z]+[-_]?)\d+\b`), "$1<n>"},
	{lazyregexp.New(`\b\d+(?:\.\d+)?\b`), "<n>"},
	{lazyregexp.New(`(<n>[,.:/x-]?){2,}`), "<n>"},
}

// idMask is the position of the ids among the masks: after times and addresses, before bare
// numbers.
const idMask = 8

var (
	mixedToken = lazyregexp.New(`[A-Za-z0-9][\w-]{5,}`)
	digits     = lazyregexp.New(`\d`)
	letters    = lazyregexp.New(`[A-Za-z]`)
	errorCode  = lazyregexp.New(`^[A-Z][A-Z_]*-?\d+$`)
)

// mixedID masks a word of digits and letters, unless it has the form of an
// error code (ORA-00942): that is the message itself.
func mixedID(word string) string {
	if len(digits.FindAllString(word, 2)) == 2 && letters.MatchString(word) && !errorCode.MatchString(word) {
		return "<id>"
	}
	return word
}

// templateOf returns the message of a line without what differs between two occurrences. The message of a
// JSON line is its level, its message and its error.
func templateOf(line string) string {
	if r, ok := jsonlog.Parse(line); ok && r.Message+r.Error != "" {
		line = r.Message
		switch {
		case line == "":
			line = r.Error
		case r.Error != "" && !strings.Contains(line, r.Error):
			line += ": " + r.Error
		}
		line = strings.TrimSpace(r.Level.String() + " " + line)
	}
	for i, m := range templateMasks {
		if i == idMask {
			line = idField.ReplaceAllString(line, "${1}_id=<id>")
			line = mixedToken.ReplaceAllStringFunc(line, mixedID)
		}
		line = m.re.ReplaceAllString(line, m.to)
	}
	line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "<time>"))
	return strings.Join(strings.Fields(line), " ")
}

// logGlob matches the logs of the task, or all files that look like logs.
func logGlob(t *conversation) string {
	var names []string
	for _, l := range t.hints.Logs {
		if globSafe(l) {
			names = append(names, l)
		}
	}
	if len(names) == 0 || len(names) >= logsMax || t.hints.MoreLogs { // there may be more than the task names
		all := []string{"**/*.log*", "**/log/*", "**/logs/*"}
		for _, l := range t.hints.JSONLogs {
			if globSafe(l) {
				all = append(all, l)
			}
		}
		return anyOf(all)
	}
	return anyOf(names)
}

func anyOf(paths []string) string {
	if len(paths) == 1 {
		return paths[0]
	}
	return "{" + strings.Join(paths, ",") + "}"
}

// askLogs lists some of the lines that match, in file order. The result counts all of them.
func askLogs(t *conversation, pattern, label string, lines int) wantedCall {
	return wantedCall{name: toolGrep, args: map[string]any{"pattern": pattern, "glob": logGlob(t), "limit": lines}, label: label}
}

// askForms lists the most frequent forms of the lines that match, each with its count.
func askForms(t *conversation, pattern, label string, forms int) wantedCall {
	return wantedCall{name: toolGrep, args: map[string]any{"pattern": pattern, "glob": logGlob(t), "limit": forms, "group": true}, label: label}
}

// formatOften says how often something was found. It may be more often if not all was read.
func formatOften(n int, partial bool) string {
	if partial {
		return "at least " + formatThousands(int64(n)) + "×"
	}
	return formatThousands(int64(n)) + "×"
}

// grepOf returns the result of a search, if there is one.
func (t *conversation) grepOf(w wantedCall) (s grepResult, ok bool) {
	text, ok := t.resultOf(w)
	if ok {
		s = parseGrep(text)
	}
	return s, ok
}

// addSearchLimits adds the limits of a search of logs.
func addSearchLimits(a *agentAnswer, label string, s grepResult) {
	if s.partial {
		a.addLimit("%s: the first %d of %s matching lines were read, in file order", label, len(s.hits), formatThousands(int64(s.matches)))
	}
	if s.skipped > 0 {
		a.addLimit("%s: %s skipped", label, formatCount(s.skipped, "large file"))
	}
}

// formatTime formats a time with the precision of the log.
func formatTime(at time.Time) string {
	switch {
	case at.Year() > 0:
		return at.Format(time.DateTime)
	case at.YearDay() > 1:
		return at.Format(time.Stamp)
	}
	return at.Format(time.TimeOnly)
}

func formatDuration(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	case d >= time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}
