package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// directive matches the first line of a step of a script, and the lines that
// `repeat` plays: the word is the directive.
var directive = regexp.MustCompile(`^([a-z]+(?:-[a-z]+)*)(?: |$)`)

// TestScriptDirectivesAreDocumented: docs/scripts.md names every directive that a script uses.
func TestScriptDirectivesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "scripts.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range []string{"agent", "supervisor"} {
		paths, err := filepath.Glob(filepath.Join(root, machine, "testdata", "*.txt"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s has no scripts: %v", machine, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range scriptDirectives(string(data)) {
				if !strings.Contains(string(page), "`"+word+"`") {
					t.Errorf("%s uses the directive %q, which docs/scripts.md does not name", path, word)
				}
			}
		}
	}
}

// spaced matches an expected output that has empty lines: it stands between pairs of separators.
var spaced = regexp.MustCompile(`(?s)\n----\n----\n.*?\n----\n----\n`)

// scriptDirectives returns the words that begin the steps of a script.
func scriptDirectives(script string) []string {
	var words []string
	next := true // a step may begin here
	for _, line := range strings.Split(spaced.ReplaceAllString(script, "\n----\n"), "\n") {
		if m := directive.FindStringSubmatch(line); next && m != nil {
			words = append(words, m[1])
		}
		next = line == "" || next && strings.HasPrefix(line, "#")
	}
	return words
}
