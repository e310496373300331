package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// claimsMax is how many rows one test may claim: one that shows everything
// shows nothing in particular.
const claimsMax = 3

// behaviourRow is a line of a table of docs/behaviours.md.
type behaviourRow struct {
	id, promise string
	missing     string // of a row under Not yet
	rest        string // the tests
	line        string // as it stands in the file
}

var backquoted = regexp.MustCompile("`([^`]+)`")

// readBehaviours returns the rows of both tables.
func readBehaviours(t *testing.T) (shown, notYet []behaviourRow) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "docs", "behaviours.md"))
	if err != nil {
		t.Fatal(err)
	}
	var into *[]behaviourRow
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case line == "## Shown":
			into = &shown
		case line == "## Not yet":
			into = &notYet
		case strings.HasPrefix(line, "|") && into != nil && !strings.HasPrefix(line, "| id ") && !strings.HasPrefix(line, "|---"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			want := 3
			if into == &notYet {
				want = 4
			}
			if len(cells) != want {
				t.Errorf("docs/behaviours.md:%d: a row has an id, a promise, under Not yet what is missing, and the tests", i+1)
				continue
			}
			r := behaviourRow{id: strings.TrimSpace(cells[0]), promise: strings.TrimSpace(cells[1]), rest: strings.TrimSpace(cells[want-1]), line: line}
			if want == 4 {
				r.missing = strings.TrimSpace(cells[2])
			}
			*into = append(*into, r)
		}
	}
	return shown, notYet
}

// readPromises returns the words of each promise, which docs/behaviours.md repeats.
func readPromises(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	promises := map[string]string{}
	for line := range strings.Lines(string(data)) {
		cells := strings.SplitN(strings.Trim(strings.TrimSpace(line), "|"), "|", 2)
		if id := strings.TrimSpace(cells[0]); len(cells) == 2 && rowID.MatchString(id) {
			promises[id] = strings.TrimSpace(cells[1])
		}
	}
	if len(promises) < 100 {
		t.Fatalf("only %d promises", len(promises))
	}
	return promises
}

// TestEveryRowIsListed: each behaviour is in one of the two tables, in the words of the promise.
func TestEveryRowIsListed(t *testing.T) {
	shown, notYet := readBehaviours(t)
	listed := map[string]int{}
	promises := readPromises(t)
	for _, r := range slices.Concat(shown, notYet) {
		listed[r.id]++
		if want, known := promises[r.id]; known && r.promise != want {
			t.Errorf("docs/behaviours.md: row %s promises\n%s\nand its words are\n%s", r.id, r.promise, want)
		}
	}
	for _, r := range notYet {
		if r.missing == "" {
			t.Errorf("docs/behaviours.md: row %s does not say what is missing", r.id)
		}
	}
	for id := range promises {
		switch n := listed[id]; {
		case n == 0:
			t.Errorf("docs/behaviours.md: row %s is in neither table", id)
		case n > 1:
			t.Errorf("docs/behaviours.md: row %s is listed %d times", id, n)
		}
		delete(listed, id)
	}
	for id := range listed {
		t.Errorf("docs/behaviours.md: there is no row %s", id)
	}
}

// TestShownByTests: every row is shown by a test that claims it or by a script
// that names it, and no test claims everything.
func TestShownByTests(t *testing.T) {
	shown, _ := readBehaviours(t)
	claims := map[string][]string{} // the rows of a test or script
	byTests := goClaims(t)
	for _, r := range shown {
		names := byTests[r.id]
		for _, m := range backquoted.FindAllStringSubmatch(r.rest, -1) {
			if !isScript(m[1]) {
				continue // TestBehavioursNameTheTestsThatClaimThem compares it with the directives
			}
			names = append(names, m[1])
			if err := scriptShows(m[1], r.id); err != nil {
				t.Errorf("docs/behaviours.md: row %s: %v", r.id, err)
			}
		}
		if len(names) == 0 {
			t.Errorf("docs/behaviours.md: row %s is shown by nothing", r.id)
		}
		for _, name := range names {
			claims[name] = append(claims[name], r.id)
		}
	}
	for name, rows := range claims {
		if len(rows) > claimsMax {
			t.Errorf("%s claims %v, at most %d rows", name, rows, claimsMax)
		}
	}
}

// entryPoint matches the paths of tests that use what a user has: a command, the Go API, a request to a node over NATS or HTTP, an example,
// the page, or real processes.
var entryPoint = regexp.MustCompile(`^(cmd/|internal/(cli|node)/|examples/|test/(browser|chaos|e2e)/|[a-z_]+_test\.go:)`)

// TestShownThroughAnEntryPoint: each row under Shown has a test through an entry point that a user has. A test of a machine
// alone shows that the behaviour exists, not that a user can reach it.
func TestShownThroughAnEntryPoint(t *testing.T) {
	shown, _ := readBehaviours(t)
	for _, r := range shown {
		if !slices.ContainsFunc(backquoted.FindAllStringSubmatch(r.rest, -1), func(m []string) bool { return entryPoint.MatchString(m[1]) }) {
			t.Errorf("docs/behaviours.md: row %s has no test that matches %s: add one that uses a command, the Go API, NATS or HTTP", r.id, entryPoint)
		}
	}
}

// scriptShows reports why a script is not there, or not about the row.
func scriptShows(path, id string) error {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	rows, _, _ := strings.Cut(strings.TrimPrefix(line, "# "), ":")
	if !slices.Contains(strings.Split(rows, ", "), id) {
		return fmt.Errorf("%s says that it is about %s, not about %s", path, rows, id)
	}
	return nil
}
