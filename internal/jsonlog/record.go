// Package jsonlog reads lines of logs that are JSON objects, as slog, zap, zerolog, logrus, bunyan, pino and
// other structured loggers write them.
package jsonlog

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Level is how serious a line is.
type Level int

// Levels, the least serious first. Unknown is a line that names no level.
const (
	Unknown Level = iota
	Info          // and everything below: debug, trace
	Warning
	Error
	Fatal
)

// String returns the level as text logs write it, "" for Unknown.
func (l Level) String() string { return [...]string{"", "INFO", "WARN", "ERROR", "FATAL"}[l] }

// Record is what a line says.
type Record struct {
	Level   Level
	Message string
	Error   string    // the text of its error
	Time    time.Time // zero: the line names none
}

// Pieces of RE2 patterns that find lines by their level.
const (
	levelKey = `(?i:"(?:@?level|@?l|lvl|levelname|log[._]?level|severity(?:_?text)?)")\s*:\s*`
	// ErrorPattern matches lines of level Error and Fatal.
	ErrorPattern = levelKey + `(?:(?i:"(?:err|eror|fatal|crit|panic|dpanic|severe|alert|emerg))|"?(?:[0-3]|5\d|60)"?\s*[,}])`
	// FailurePattern matches lines that have the text of an error.
	FailurePattern = `^\s*\{.*"(?:error|err|exception|error\.message)"\s*:\s*(?:"[^"]|\{)`
	// WarningPattern matches lines of level Warning.
	WarningPattern = levelKey + `(?:(?i:"warn)|"?(?:4|4\d)"?\s*[,}])`
	// LinePattern matches lines that a structured logger can have written.
	LinePattern = `^\s*\{.*(?:` + levelKey + `(?:(?i:"(?:trace|debug|info|notice|warn|err|eror|fatal|crit|panic|dpanic|severe|alert|emerg))|"?\d0?"?\s*[,}])|` +
		timeKey + `.*` + messageKey + `|` + messageKey + `.*` + timeKey + `)`
	timeKey    = `(?i:"(?:time|@?timestamp|ts|@t|datetime)")\s*:`
	messageKey = `(?i:"(?:msg|@?message|@mt?|event|short_message|log)")\s*:`
)

// Parse reads a line. A line that was cut off yields the fields before the cut. ok is false for a line
// that is no JSON object, or one without a level, a message and an error.
func Parse(line string) (r Record, ok bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "{") {
		return Record{}, false
	}
	fields := json.NewDecoder(strings.NewReader(line))
	fields.UseNumber()
	if _, err := fields.Token(); err != nil {
		return Record{}, false
	}
	for fields.More() {
		key, err := fields.Token()
		if err != nil {
			break
		}
		name, isKey := key.(string)
		var value any
		if !isKey || fields.Decode(&value) != nil {
			break
		}
		r.setField(strings.ToLower(name), value)
	}
	return r, r.Level != Unknown || r.Message != "" || r.Error != ""
}

// setField keeps a field that the record needs. The first name of a kind counts.
func (r *Record) setField(name string, value any) {
	switch name {
	case "level", "@level", "l", "@l", "lvl", "levelname", "loglevel", "log_level", "log.level", "severity", "severity_text", "severitytext":
		if r.Level == Unknown {
			r.Level = levelOf(value)
		}
	case "msg", "message", "@message", "m", "@m", "@mt", "event", "short_message":
		r.Message = firstText(r.Message, value)
	case "log": // the text of a line in files of Docker; the level in those of ECS
		if nested, isObject := value.(map[string]any); isObject && r.Level == Unknown {
			r.Level = levelOf(nested["level"])
		}
		r.Message = firstText(r.Message, value)
	case "error", "err", "exception", "error.message", "@x":
		if nested, isObject := value.(map[string]any); isObject {
			value = nested["message"]
		}
		r.Error = firstText(r.Error, value)
	case "time", "ts", "t", "@t", "timestamp", "@timestamp", "datetime", "asctime", "eventtime":
		if r.Time.IsZero() {
			r.Time = timeOf(value)
		}
	}
}

func firstText(known string, value any) string {
	if text, isText := value.(string); isText && known == "" {
		return strings.TrimSpace(text)
	}
	return known
}

// Levels that are numbers: 0 to 7 are those of syslog, 10 to 60 those of bunyan and pino.
const (
	syslogCritical = 2
	syslogError    = 3
	syslogWarning  = 4
	pinoWarning    = 40
	pinoError      = 50
	pinoFatal      = 60
)

func levelOf(value any) Level {
	text := strings.ToLower(strings.TrimSpace(textOf(value)))
	if n, err := strconv.Atoi(text); err == nil {
		return levelOfNumber(n)
	}
	for _, known := range []struct {
		level Level
		words []string
	}{
		{Fatal, []string{"fatal", "crit", "panic", "dpanic", "alert", "emerg"}},
		{Error, []string{"err", "eror", "severe"}},
		{Warning, []string{"warn"}},
		{Info, []string{"info", "notice", "debug", "trace", "verbose", "fine", "dbug", "default"}},
	} {
		for _, word := range known.words {
			if strings.HasPrefix(text, word) {
				return known.level
			}
		}
	}
	return Unknown
}

func levelOfNumber(n int) Level {
	switch {
	case n >= 0 && n <= syslogCritical, n >= pinoFatal:
		return Fatal
	case n == syslogError, n >= pinoError:
		return Error
	case n == syslogWarning, n >= pinoWarning:
		return Warning
	case n > 0:
		return Info
	}
	return Unknown
}

func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// wallTime is a date and a time of day. A zone is not read: times of one file are compared with each other only.
var wallTime = lazyregexp.New(`^(\d{4}[-/]\d\d[-/]\d\d)[T ](\d\d:\d\d:\d\d)([.,]\d{1,9})?`)

// Numbers above these are milliseconds, microseconds and nanoseconds.
const (
	millisMin = 1e11
	microsMin = 1e14
	nanosMin  = 1e17
)

func timeOf(value any) time.Time {
	text := textOf(value)
	if m := wallTime.FindStringSubmatch(text); m != nil {
		at, err := time.Parse(time.DateTime, strings.ReplaceAll(m[1], "/", "-")+" "+m[2]+strings.ReplaceAll(m[3], ",", "."))
		if err != nil {
			return time.Time{}
		}
		return at
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 1e9 && seconds < 1e19) { // NaN is neither
		return time.Time{}
	}
	switch {
	case seconds >= nanosMin:
		return time.Unix(0, int64(seconds)).UTC()
	case seconds >= microsMin:
		return time.UnixMicro(int64(seconds)).UTC()
	case seconds >= millisMin:
		return time.UnixMilli(int64(seconds)).UTC()
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC()
}
