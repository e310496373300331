package investigator_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	kindsMin       = 4
	turnBytesMax   = 6 << 10
	agentBytesMax  = 10 << 10
	logRunTokens   = 45000
	linesOfLogFile = 3000
)

// randomSource is a small generator of numbers that are the same in every run.
type randomSource uint64

func (n *randomSource) intBelow(limit int) int {
	*n = *n*6364136223846793005 + 1442695040888963407
	return int(uint64(*n)>>33) % limit
}

// serviceLogs are three large logs with a gap, failures, slow queries, a start.
func serviceLogs(t *testing.T) string {
	dir := t.TempDir()
	n := randomSource(7)
	for _, name := range []string{"api.log", "worker.log", "db.log"} {
		var b strings.Builder
		at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
		for i := 1; i <= linesOfLogFile; i++ {
			at = at.Add(time.Duration(50+n.intBelow(2450)) * time.Millisecond)
			if i == linesOfLogFile/2 {
				at = at.Add(14 * time.Minute)
			}
			says := fmt.Sprintf("INFO handled GET /v1/items/%d in %dms", n.intBelow(999), n.intBelow(300))
			switch share := n.intBelow(100); {
			case i == linesOfLogFile:
				says = "INFO starting up version 1.2.3"
			case i == linesOfLogFile/3:
				says = "ERROR disk is failing: sector 12"
			case share < 2:
				says = fmt.Sprintf("ERROR connection to 10.0.0.%d:5432 refused after %dms", n.intBelow(9), n.intBelow(999))
			case share < 5:
				says = fmt.Sprintf("WARN slow query took %dms", 500+n.intBelow(8500))
			}
			fmt.Fprintf(&b, "%s %s request_id=%08x\n", at.Format("2006-01-02T15:04:05.000Z"), says, n.intBelow(4000)*7919)
		}
		writeFile(t, dir, name, b.String())
	}
	return dir
}

// hostLogs are a syslog, whose times have no year, and lines of JSON.
func hostLogs(t *testing.T) string {
	dir := t.TempDir()
	n := randomSource(11)
	var syslog, app strings.Builder
	at := time.Date(2026, 11, 3, 2, 0, 0, 0, time.UTC)
	for i := 1; i <= 2000; i++ {
		at = at.Add(time.Duration(1+n.intBelow(40)) * time.Second)
		if i == 900 {
			at = at.Add(2 * time.Hour)
		}
		says := fmt.Sprintf("CRON[%d]: (root) CMD (run-parts /etc/cron.hourly)", n.intBelow(9999))
		switch share := n.intBelow(100); {
		case i%500 == 0:
			says = "systemd[1]: nginx.service: Main process exited, code=exited, status=1/FAILURE"
		case share < 2:
			says = fmt.Sprintf("dhclient[%d]: error: no DHCPOFFERS received", n.intBelow(999))
		}
		fmt.Fprintf(&syslog, "%s host1 %s\n", at.Format(time.Stamp), says)
		level, text := "info", "request"
		if n.intBelow(60) == 0 {
			level, text = "error", "upstream timeout"
		}
		fmt.Fprintf(&app, `{"ts":"%s","level":"%s","msg":"%s","duration_ms":%d}`+"\n", at.Format(time.RFC3339), level, text, n.intBelow(1200))
	}
	writeFile(t, dir, "syslog", syslog.String())
	writeFile(t, dir, "app.log", app.String())
	return dir
}

// quietLogs hold nothing that is wrong.
func quietLogs(t *testing.T) string {
	dir := t.TempDir()
	var b strings.Builder
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for i := range 500 {
		at = at.Add(time.Duration(1+i%3) * time.Second)
		fmt.Fprintf(&b, "%s status installed package%d:amd64 1.%d\n", at.Format(time.DateTime), i, i%7)
	}
	writeFile(t, dir, "install.log", b.String())
	return dir
}

func nodePackage(t *testing.T) string {
	dir := t.TempDir()
	writeFile(t, dir, "package.json", "{\n  \"name\": \"till\",\n  \"license\": \"MIT\",\n  \"main\": \"index.js\",\n  \"engines\": {\n    \"node\": \">= 18\"\n  }\n}\n")
	writeFile(t, dir, "LICENSE", "(The MIT License)\n")
	writeFile(t, dir, "index.js", "module.exports = require('./lib/till')\n")
	writeFile(t, dir, "lib/till.js", "'use strict'\nexports.count = () => 1\n")
	return dir
}

func javaPackage(t *testing.T) string {
	dir := t.TempDir()
	writeFile(t, dir, "pom.xml", "<project>\n  <artifactId>till</artifactId>\n  <name>The MIT License</name>\n  <release>17</release>\n</project>\n")
	writeFile(t, dir, "src/main/java/Till.java", "package till;\n\npublic final class Till {\n}\n")
	return dir
}

func pythonFiles(t *testing.T) string {
	dir := t.TempDir()
	for i := range 6 {
		writeFile(t, dir, fmt.Sprintf("part%d.py", i), "import os\n\nclass Till:\n    pass\n\nif __name__ == '__main__':\n    Till()\n")
	}
	return dir
}

func TestEveryKindOfPlaceHasFourKindsOfFinding(t *testing.T) {
	for name, place := range map[string]func(*testing.T) string{"service logs": serviceLogs, "host logs": hostLogs, "quiet logs": quietLogs,
		"a Node.js package": nodePackage, "a Java package": javaPackage, "Python files": pythonFiles,
		"a git repository": func(t *testing.T) string { return sampleRepository(t) }} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			d := newDriver(t, directoryTools(t, dir))
			d.runAgent("coordinator", task)
			r := readReport(t, dir)
			if len(r.findingKinds()) < kindsMin {
				t.Errorf("kinds: %v\n%s", r.findingKinds(), readFile(t, dir, "report.md"))
			}
			d.checkResultBytes(t)
			if d.totalTokens() > logRunTokens {
				t.Errorf("%d tokens: %v", d.totalTokens(), d.tokens)
			}
		})
	}
}

// checkResultBytes checks the bytes of tool results: a lease is reserved by them.
func (d *agentDriver) checkResultBytes(t *testing.T) {
	t.Helper()
	for name, bytes := range d.peak {
		if name != "coordinator" && (bytes > agentBytesMax || d.turnPeak[name] > turnBytesMax) {
			t.Errorf("%s: %d bytes of tool results, %d of them in one turn", name, bytes, d.turnPeak[name])
		}
	}
}

// TestLogsAreCountedInFull: every number of a line of a log is that of all its lines, also in a file that
// is larger than what a search may show.
func TestLogsAreCountedInFull(t *testing.T) {
	dir := serviceLogs(t)
	var all strings.Builder
	for _, name := range []string{"api.log", "worker.log", "db.log"} {
		all.WriteString(readFile(t, dir, name))
	}
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	r := readReport(t, dir)
	for _, kind := range []string{"error-cluster", "warning-cluster", "gap", "restart", "slow"} {
		if !r.findingKinds()[kind] {
			t.Errorf("no %s in %v", kind, r.findingKinds())
		}
	}
	md := readFile(t, dir, "report.md")
	for _, want := range []string{"14 min", "## Good to know", "3×: ERROR disk is failing",
		fmt.Sprintf("%d×: ERROR connection to", strings.Count(all.String(), "ERROR connection")),
		fmt.Sprintf("%d×: WARN slow query took", strings.Count(all.String(), "WARN slow"))} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	if regexp.MustCompile(`about \d|estimate`).MatchString(md) {
		t.Errorf("a number is an estimate:\n%s", md)
	}
}

// TestFoldersOfLogsEndWithAReport: a log of 20,000 lines among logs of builds. Its failing lines and ids
// are found, and the search is no loop.
func TestFoldersOfLogsEndWithAReport(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 20_000 {
		level, says := "INFO", "served /api in 12ms"
		if i%100 == 7 {
			level, says = "ERROR", "db timeout after 30s"
		}
		fmt.Fprintf(&b, "2026-01-02T03:%02d:%02dZ %s req=%06d %s\n", i/1000, i/20%60, level, i, says)
	}
	writeFile(t, dir, "app.log", b.String())
	writeFile(t, dir, "proxy.log", "2026-01-02T03:00:00Z WARN req=000007 upstream is slow\n")
	for i := range 9 {
		writeFile(t, dir, fmt.Sprintf("build%d.log", i), strings.Repeat("compiling\n", 3000)+"make: *** [all] Error 2\n")
	}
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	md := readFile(t, dir, "report.md")
	for _, want := range []string{"200×: ERROR req_id=<id> db timeout", "000007 is in 2 files: app.log → proxy.log"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
}
