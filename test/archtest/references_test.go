package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reference matches a place in the code as documents name it: `agent/turn.go: finishAgent`,
// with several names after a comma.
var reference = regexp.MustCompile("`([\\w/]+\\.go): ([\\w., ]+)`")

// TestDocumentsNameFunctionsThatExist: a rename that leaves ARCHITECTURE.md behind sends its
// next reader to nothing.
func TestDocumentsNameFunctionsThatExist(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range append(documents, filepath.Join(root, "ARCHITECTURE.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reference.FindAllStringSubmatch(string(text), -1) {
			declared := declaredIn(t, m[1])
			for _, name := range strings.Split(m[2], ", ") {
				checked++
				if !declared[name] {
					t.Errorf("%s names `%s: %s`, which is not declared there", filepath.Base(path), m[1], name)
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d references found: has their form changed?", checked)
	}
}

// declaredIn returns what a file declares; a method is there as Type.Method, too.
func declaredIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	names := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
			if d.Recv != nil {
				names[receiver(d)+"."+d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
