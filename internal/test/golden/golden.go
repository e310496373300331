// Package golden compares values with files that a person can read. A test
// fails with the lines that differ; go test PACKAGE -update rewrites the files.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// diffLinesMax is how many differing lines a failure shows.
const diffLinesMax = 60

// Compare compares text with the file at path.
func Compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is no %s: run this test with -update, and read the file", path)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := diffLines(string(want), got); d != "" {
		t.Errorf("%s differs; if the change is meant, run this test with -update and read the difference\n%s", path, d)
	}
}

// CheckUnused fails for files of a directory that no test compares any more; with
// -update it removes them.
func CheckUnused(t *testing.T, dir string, compared map[string]bool) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch path := filepath.Join(dir, e.Name()); {
		case e.IsDir() || compared[e.Name()]:
		case !*update:
			t.Errorf("no test compares %s: run this test with -update, which removes it", path)
		default:
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// JSON writes a value with indented lines, and text as it is.
func JSON(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// diffLines returns the lines between the first and the last difference of two
// texts, and "" if there is none.
func diffLines(want, got string) string {
	if want == got {
		return ""
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		first++
	}
	for len(a) > first && len(b) > first && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out strings.Builder
	fmt.Fprintf(&out, "from line %d:\n", first+1)
	show := func(mark string, lines []string) {
		for i, line := range lines {
			if i == diffLinesMax {
				fmt.Fprintf(&out, "%s … %d more lines\n", mark, len(lines)-i)
				return
			}
			fmt.Fprintf(&out, "%s %s\n", mark, line)
		}
	}
	show("-", a[first:])
	show("+", b[first:])
	return out.String()
}
