package eval

import (
	"path/filepath"
	"testing"

	"github.com/troupe-run/troupe/internal/test/golden"
)

// TestOpenedCases compares the first entry of each case's run with
// testdata/opened/CASE.json. A case is opened by this package, not by internal/node.
func TestOpenedCases(t *testing.T) {
	cases, err := LoadCases("../../test/evals")
	if err != nil {
		t.Fatal(err)
	}
	dir, files := filepath.Join("testdata", "opened"), map[string]bool{}
	for _, c := range cases {
		name := c.ID + ".json"
		if files[name] {
			t.Fatalf("two cases are called %s", c.ID)
		}
		files[name] = true
		golden.Compare(t, filepath.Join(dir, name), golden.JSON(t, golden.ToTree(c.openedEntry(), func(text string) string { return text })))
	}
	golden.CheckUnused(t, dir, files)
}
