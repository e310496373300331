package jsonlog_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/jsonlog"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestLinesOfLoggersAreRead: one line of each logger, as it writes it.
func TestLinesOfLoggersAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want jsonlog.Record
	}{
		"slog":            {`{"time":"2026-01-02T03:04:05Z","level":"ERROR+2","msg":"job failed","err":"refused"}`, jsonlog.Record{Level: jsonlog.Error, Message: "job failed", Error: "refused", Time: at}},
		"zap":             {`{"level":"dpanic","ts":1767323045.0,"caller":"a/b.go:7","msg":"lost"}`, jsonlog.Record{Level: jsonlog.Fatal, Message: "lost", Time: at}},
		"zap development": {`{"L":"WARN","T":"2026-01-02T03:04:05.000+0100","M":"slow"}`, jsonlog.Record{Level: jsonlog.Warning, Message: "slow", Time: at}},
		"zerolog":         {`{"level":"error","error":"EOF","time":1767323045,"message":"read"}`, jsonlog.Record{Level: jsonlog.Error, Message: "read", Error: "EOF", Time: at}},
		"logrus":          {`{"error":"EOF","level":"warning","msg":"read","time":"2026-01-02T03:04:05Z"}`, jsonlog.Record{Level: jsonlog.Warning, Message: "read", Error: "EOF", Time: at}},
		"bunyan":          {`{"name":"api","hostname":"h","pid":1,"level":50,"err":{"message":"reset","name":"Error"},"msg":"lost","time":"2026-01-02T03:04:05.000Z","v":0}`, jsonlog.Record{Level: jsonlog.Error, Message: "lost", Error: "reset", Time: at}},
		"pino":            {`{"level":60,"time":1767323045000,"pid":7,"hostname":"h","msg":"out"}`, jsonlog.Record{Level: jsonlog.Fatal, Message: "out", Time: at}},
		"winston":         {`{"level":"info","message":"ready","timestamp":"2026-01-02 03:04:05"}`, jsonlog.Record{Level: jsonlog.Info, Message: "ready", Time: at}},
		"structlog":       {`{"event":"ready","level":"debug","timestamp":"2026-01-02T03:04:05Z"}`, jsonlog.Record{Level: jsonlog.Info, Message: "ready", Time: at}},
		"ECS":             {`{"@timestamp":"2026-01-02T03:04:05.000Z","log.level":"error","message":"no","error":{"message":"why"}}`, jsonlog.Record{Level: jsonlog.Error, Message: "no", Error: "why", Time: at}},
		"Google":          {`{"severity":"CRITICAL","message":"no","time":"2026-01-02T03:04:05Z"}`, jsonlog.Record{Level: jsonlog.Fatal, Message: "no", Time: at}},
		"GELF":            {`{"version":"1.1","host":"h","short_message":"no","timestamp":1767323045,"level":3}`, jsonlog.Record{Level: jsonlog.Error, Message: "no", Time: at}},
		"Docker":          {`{"log":"ERROR no\n","stream":"stderr","time":"2026-01-02T03:04:05.000000000Z"}`, jsonlog.Record{Message: "ERROR no", Time: at}},
		"cut off":         {`{"level":"error","msg":"job failed","stack":"at …[line clipped]`, jsonlog.Record{Level: jsonlog.Error, Message: "job failed"}},
	} {
		if got, ok := jsonlog.Parse(c.line); !ok || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, ok, c.want)
		}
	}
}

func TestOtherLinesAreNoRecords(t *testing.T) {
	for _, line := range []string{"", "{", "{}", "[1]", "2026-01-02 ERROR no", `{"question":"x","answer":"y"}`, `{"level":"Level 5"}`, `{"level":null,"msg":7}`, `{1:2}`} {
		if got, ok := jsonlog.Parse(line); ok {
			t.Errorf("%q is read as %+v", line, got)
		}
	}
}

// TestPatternsMatchTheLinesOfTheirLevel: a search by pattern finds what Parse calls by that level.
func TestPatternsMatchTheLinesOfTheirLevel(t *testing.T) {
	isError, isWarning, isLine := regexp.MustCompile(jsonlog.ErrorPattern), regexp.MustCompile(jsonlog.WarningPattern), regexp.MustCompile(jsonlog.LinePattern)
	for _, line := range []string{`{"level":"ERROR","msg":"a"}`, `{"level":"eror","msg":"a"}`, `{"level": "Error", "msg":"a"}`, `{"lvl":"crit","msg":"a"}`, `{"msg":"a","severity":"emergency"}`, `{"level":50}`,
		`{"level":60,"msg":"a"}`, `{"level":2,"msg":"a"}`, `{"level":4}`, `{"level":40,"msg":"a"}`, `{"@l":"Warning","@mt":"a"}`, `{"level":"warn","msg":"level error"}`, `{"level":30,"msg":"50"}`,
		`{"level":"info","msg":"ERROR"}`, `{"levelname":"CRITICAL","message":"a"}`, `{"level":6,"short_message":"a"}`, `{"severity_text":"WARN","msg":"a"}`} {
		r, _ := jsonlog.Parse(line)
		if isError.MatchString(line) != (r.Level >= jsonlog.Error) || isWarning.MatchString(line) != (r.Level == jsonlog.Warning) || !isLine.MatchString(line) {
			t.Errorf("%s is %v; matches error %v, warning %v, any %v", line, r.Level, isError.MatchString(line), isWarning.MatchString(line), isLine.MatchString(line))
		}
	}
	for _, line := range []string{`{"level":"Level 5","problem":"a"}`, `{"messages":[{"role":"user"}]}`, `{"id":1}`} {
		if isLine.MatchString(line) {
			t.Errorf("%s is taken for a line of a log", line)
		}
	}
}
