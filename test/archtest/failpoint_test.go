package archtest

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestEveryFailpointIsReached: a place that no code reaches is one at which the chaos suite waits
// for a kill that never comes.
func TestEveryFailpointIsReached(t *testing.T) {
	places, reached := failpointPlaces(t), map[string]bool{}
	for _, f := range readSources(t) {
		if f.test || f.isBelow("test") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if from, name := selectorParts(call.Fun); from == "failpoint" && (name == "At" || name == "AtEntry") {
				if pkg, place := selectorParts(call.Args[0]); pkg == "failpoint" {
					reached[place] = true
				}
			}
			return true
		})
	}
	if len(places) < 10 {
		t.Fatalf("only %d places found: %v", len(places), places)
	}
	for _, place := range places {
		if !reached[place] {
			t.Errorf("failpoint.%s: no code outside of tests reaches it by failpoint.At", place)
		}
	}
}

// failpointPlaces returns the names of the constants in the group "Places" of package failpoint.
func failpointPlaces(t *testing.T) (names []string) {
	for _, f := range readSources(t) {
		if f.path != "internal/failpoint/failpoint.go" {
			continue
		}
		for _, decl := range f.ast.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST || group.Doc.Text() != "Places.\n" {
				continue
			}
			for _, spec := range group.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
