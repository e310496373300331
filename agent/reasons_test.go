package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
)

// elsewhere says where a stop reason comes from that no script of the loop ends with.
var elsewhere = map[spec.Reason]string{}

// TestStopReasons: every stop reason is the end of a script, or it is said
// above where it comes from (A7).
//
//behaviour:shows A7
func TestStopReasons(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	ended := map[spec.Reason]bool{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			if rest, ok := strings.CutPrefix(line, "  finish "); ok {
				reason, _, _ := strings.Cut(rest, " ")
				ended[spec.Reason(reason)] = true
			}
		}
	}
	for _, r := range spec.Reasons() {
		switch where := elsewhere[r]; {
		case where == "" && !ended[r]:
			t.Errorf("no script ends with %s", r)
		case where != "" && ended[r]:
			t.Errorf("a script ends with %s, which is said to come from elsewhere: %s", r, where)
		}
		delete(ended, r)
	}
	for r := range ended {
		t.Errorf("a script ends with %q, which is not in Reasons", r)
	}
}

// TestScriptFirstLineNamesItsRow: each script says what it shows, and of which row.
func TestScriptFirstLineNamesItsRow(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(data), "\n")
		row, what, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": ")
		if !strings.HasPrefix(line, "# ") || !ok || len(row) < 2 || what == "" {
			t.Errorf("%s begins with %q; it should begin with `# ROW: what it shows`", path, line)
		}
	}
}
