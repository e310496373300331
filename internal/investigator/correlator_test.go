package investigator_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestFailingIDsAreFoundBehindLinesThatNameNoFailure: the word error is in a field of each line that reports success.
func TestFailingIDsAreFoundBehindLinesThatNameNoFailure(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"api.log", "worker.log"} {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, "2026-01-02T03:%02d:00Z INFO a request_id=q%05d ok errors=0 error=none\n", i%60, i)
		}
		b.WriteString("2026-01-02T04:00:00Z ERROR a request_id=q99999 failed\n")
		writeFile(t, dir, name, b.String())
	}
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	md := readFile(t, dir, "report.md")
	if !strings.Contains(md, "q99999 is in 2 files: api.log → worker.log") || strings.Contains(md, "no failing line") {
		t.Errorf("the failing request is not followed:\n%s", md)
	}
}

// TestFailuresWithoutALevelAreFollowed: a log whose lines have no level is searched by its words.
func TestFailuresWithoutALevelAreFollowed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"api.log", "worker.log"} {
		writeFile(t, dir, name, strings.Repeat("2026-01-02T03:00:00Z request_id=q00001 served\n", 5)+"2026-01-02T04:00:00Z request_id=q99999 upstream timed out\n")
	}
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	if md := readFile(t, dir, "report.md"); !strings.Contains(md, "q99999 is in 2 files") {
		t.Errorf("the failing request is not followed:\n%s", md)
	}
}

// TestNoFailureIsNotClaimedOfLinesThatWereNotRead: more lines may be failing than a search lists.
func TestNoFailureIsNotClaimedOfLinesThatWereNotRead(t *testing.T) {
	for lines, want := range map[int]string{
		5:  "correlation: no failing line with a request, trace, session or order id",
		90: "correlation: 16 of 90 lines with an id that may be failing were read, and none of those fails: the others were not looked at",
	} {
		dir := t.TempDir()
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "2026-01-02T03:%02d:00Z INFO a request_id=q%05d ok error=none\n", i%60, i)
		}
		writeFile(t, dir, "api.log", b.String())
		newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
		if md := readFile(t, dir, "report.md"); !strings.Contains(md, want) {
			t.Errorf("%d lines: no %q in\n%s", lines, want, md)
		}
	}
}
