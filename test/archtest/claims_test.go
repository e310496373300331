package archtest

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// update rewrites the names of Go tests in docs/behaviours.md from the
// directives over the tests: go test ./test/archtest -update
var update = flag.Bool("update", false, "rewrite the names of Go tests in docs/behaviours.md")

// claimDirective stands over a Go test and names the rows that the test shows:
//
//	//behaviour:shows A17 H2
//
// The claim stays with the test when it is renamed or moved.
const claimDirective = "//behaviour:shows "

var (
	misspelled = regexp.MustCompile(`^//\s*behaviou?rs?:`)
	rowID      = regexp.MustCompile(`^[A-K][1-9][0-9]?$`)
	claimable  = regexp.MustCompile(`^(Test|Example|Fuzz)`)
)

// goClaims returns the names of the tests that claim each row, as path:Test, in order.
func goClaims(t *testing.T) map[string][]string {
	t.Helper()
	claims := map[string][]string{}
	for _, f := range readSources(t) {
		over := map[*ast.Comment]string{}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Doc != nil && f.test && fn.Recv == nil && claimable.MatchString(fn.Name.Name) {
				for _, c := range fn.Doc.List {
					over[c] = fn.Name.Name
				}
			}
		}
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				rows, ok := strings.CutPrefix(c.Text, claimDirective)
				if !ok {
					if misspelled.MatchString(c.Text) {
						t.Errorf("%s: a claim is written %sROW ROW", f.lineOf(c), claimDirective)
					}
					continue
				}
				test := over[c]
				if test == "" {
					t.Errorf("%s: a claim must stand directly over a test, an example or a fuzz test", f.lineOf(c))
					continue
				}
				for _, id := range strings.Fields(rows) {
					if !rowID.MatchString(id) {
						t.Errorf("%s: %q is no row of docs/behaviours.md", f.lineOf(c), id)
					}
					claims[id] = append(claims[id], f.path+":"+test)
				}
			}
		}
	}
	for _, names := range claims {
		slices.Sort(names)
	}
	return claims
}

// shownBy returns the cell of a row: its scripts as the document lists them, each
// once, then the Go tests that claim it.
func shownBy(r behaviourRow, claims map[string][]string) string {
	var names []string
	for _, m := range backquoted.FindAllStringSubmatch(r.rest, -1) {
		if isScript(m[1]) && !slices.Contains(names, "`"+m[1]+"`") {
			names = append(names, "`"+m[1]+"`")
		}
	}
	for _, name := range claims[r.id] {
		names = append(names, "`"+name+"`")
	}
	return strings.Join(names, " ")
}

// noPart stands where no test shows even a part of a promise.
const noPart = "—"

func isScript(name string) bool {
	return strings.Contains(name, "/testdata/")
}

// TestBehavioursNameTheTestsThatClaimThem: the Go tests in docs/behaviours.md
// are those whose directives claim the row.
func TestBehavioursNameTheTestsThatClaimThem(t *testing.T) {
	claims := goClaims(t)
	shown, notYet := readBehaviours(t)
	rewritten := map[string]string{}
	for _, r := range slices.Concat(shown, notYet) {
		want, promise := shownBy(r, claims), r.promise
		if r.missing != "" {
			want, promise = cmp.Or(want, noPart), promise+" | "+r.missing
		}
		delete(claims, r.id)
		if want == r.rest {
			continue
		}
		rewritten[r.line] = fmt.Sprintf("| %s | %s | %s |", r.id, promise, want)
		if !*update {
			t.Errorf("docs/behaviours.md is stale: run go test ./test/archtest -update\nrow %s has   %s\nits tests say %s", r.id, r.rest, want)
		}
	}
	for id, names := range claims {
		t.Errorf("%s claims row %s, which docs/behaviours.md does not have", names[0], id)
	}
	if *update && !t.Failed() {
		rewriteBehaviours(t, rewritten)
	}
}

// rewriteBehaviours replaces lines of docs/behaviours.md.
func rewriteBehaviours(t *testing.T, rewritten map[string]string) {
	t.Helper()
	path := filepath.Join(root, "docs", "behaviours.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		if with, ok := rewritten[line]; ok {
			lines[i] = with
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}
