package investigator_test

import (
	"fmt"
	"strings"
	"testing"
)

// loggers write the same line as different loggers do; %[1]s is its level, %[2]d its number.
var loggers = map[string]struct {
	line          string
	failing, fine string // levels
}{
	"slog.jsonl":    {`{"time":"2026-01-02T03:%02[3]d:%02[4]dZ","level":"%[1]s","msg":"job %[2]d failed","user":"%[5]s","err":"refused"}`, "ERROR", "INFO"},
	"zap.log":       {`{"level":"%[1]s","ts":1767322800.%06[2]d,"caller":"w/w.go:%[3]d%[4]d","msg":"disk is full","volume":"%[5]s"}`, "error", "info"},
	"logrus.out":    {`{"error":"EOF","level":"%[1]s","msg":"cannot read","n":%[2]d,"time":"2026-01-02T03:%02[3]d:%02[4]dZ","who":"%[5]s"}`, "error", "info"},
	"bunyan.ndjson": {`{"name":"api","hostname":"%[5]s","pid":%[2]d,"level":%[1]s,"msg":"upstream reset","time":"2026-01-02T03:%02[3]d:%02[4]d.000Z","v":0}`, "50", "30"},
	"pino.jsonl":    {`{"level":%[1]s,"time":1767322800%03[2]d,"pid":1%02[3]d%02[4]d,"hostname":"%[5]s","reqId":"req-1%[2]d","msg":"request errored"}`, "50", "30"},
}

// TestJSONLinesAreCountedInFull: logs of JSON lines are logs under any usual name, each failure is counted in
// all lines, and the level of a line decides, not its words.
func TestJSONLinesAreCountedInFull(t *testing.T) {
	dir := t.TempDir()
	for name, logger := range loggers {
		var b strings.Builder
		for i := range 900 {
			level := logger.fine
			if i%9 == 0 {
				level = logger.failing
			}
			fmt.Fprintf(&b, logger.line+"\n", level, i, i/60, i%60, strings.Repeat("x", i%40)) // words without digits differ, too
		}
		writeFile(t, dir, name, b.String())
	}
	writeFile(t, dir, "answers.jsonl", strings.Repeat(`{"question":"a","answer":"b"}`+"\n", 50))
	writeFile(t, dir, "slog.jsonl.1.gz", "\x1f\x8b")
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	readReport(t, dir)
	md := readFile(t, dir, "report.md")
	for _, want := range []string{"100×: ERROR job <n> failed: refused", "100×: ERROR disk is full", "100×: ERROR cannot read: EOF", "100×: ERROR upstream reset", "100×: ERROR request errored",
		"- answers.jsonl: no line has a level", "- 1 compressed log not read: slog.jsonl.1.gz"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	if strings.Contains(md, "800×") {
		t.Errorf("lines of level info are reported:\n%s", md)
	}
}

// TestLongJSONLinesAreFindings: a line that is too long to quote is shown by its place.
func TestLongJSONLinesAreFindings(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		writeFile(t, dir, fmt.Sprintf("w%d.jsonl", i), strings.Repeat(fmt.Sprintf(`{"level":"error","msg":"worker stopped","stack":"%s"}`+"\n", strings.Repeat("at f ", 100)), 30))
	}
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	readReport(t, dir)
	md := readFile(t, dir, "report.md")
	for _, want := range []string{"240×: ERROR worker stopped (several files)", "   - `w0.jsonl:1`\n", "2 files that may be logs not looked at: w8.jsonl, w9.jsonl"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
}

// TestLogsBesideCodeAreNamed: a source tree is not searched for failing lines, and the report says so.
func TestLogsBesideCodeAreNamed(t *testing.T) {
	dir := sampleRepository(t)
	writeFile(t, dir, "app.log", "ERROR no\n")
	writeFile(t, dir, "worker.jsonl", `{"level":"error","msg":"no"}`+"\n")
	writeFile(t, dir, "testdata/a.jsonl", `{"level":"error","msg":"no"}`+"\n")
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	if md := readFile(t, dir, "report.md"); !strings.Contains(md, "- 2 log files beside the code: not analysed: app.log, worker.jsonl\n") {
		t.Errorf("limits:\n%s", md)
	}
}

// TestIDsOfJSONLinesAreFollowed: a field that is called as an id is one, and a part of a longer id is not followed.
func TestIDsOfJSONLinesAreFollowed(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "billing.jsonl", `{"time":"2026-01-02T03:00:07Z","level":"ERROR","msg":"payment declined","trace":"000007d2"}`+"\n"+
		`{"time":"2026-01-02T03:00:09Z","level":"ERROR","msg":"cannot connect","order":"77"}`+"\n")
	writeFile(t, dir, "gateway.jsonl", `{"time":"2026-01-02T03:00:05Z","level":"INFO","msg":"request","trace":"000007d2"}`+"\n"+
		`{"time":"2026-01-02T03:00:06Z","level":"INFO","msg":"request","trace":"00000077"}`+"\n")
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	readReport(t, dir)
	md := readFile(t, dir, "report.md")
	if want := "000007d2 is in 2 files: gateway.jsonl → billing.jsonl"; !strings.Contains(md, want) {
		t.Errorf("the report has no %q:\n%s", want, md)
	}
	for _, not := range []string{"77 is in 2 files", "no failing line with a request"} {
		if strings.Contains(md, not) {
			t.Errorf("the report has %q:\n%s", not, md)
		}
	}
}
