package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each invariant of the list has a name and a rule of its own, and a judge holds it. Each failure names one, and each judge
// holds at least one.
func TestInvariants(t *testing.T) {
	t.Parallel()
	listed := listInvariants(t)
	if len(listed) < 50 {
		t.Fatalf("only %d invariants are listed", len(listed))
	}
	held, judges := map[string]int{}, map[string]bool{}
	for _, file := range parseSimulator(t) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				countFailures(t, f, listed, held, judges)
			}
		}
	}
	for name := range listed {
		if held[name] == 0 {
			t.Errorf("no judge holds the invariant %s", name)
		}
	}
	for judge, holds := range judges {
		if !holds {
			t.Errorf("%s holds no invariant", judge)
		}
	}
}

// listInvariants reads the list: the rule of each invariant, by the name of its constant.
func listInvariants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "invariants.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	rules, names := map[string]string{}, map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name, rule := v.Names[0].Name, strings.TrimSpace(v.Doc.Text())
		value, isText := v.Values[0].(*ast.BasicLit)
		if _, rule, _ = strings.Cut(rule, name+": "); !isText || rule == "" || names[value.Value] || names[rule] {
			t.Errorf("%s has no name or rule of its own", name)
			return true
		}
		names[value.Value], names[rule], rules[name] = true, true, rule
		return true
	})
	return rules
}

func parseSimulator(t *testing.T) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// countFailures counts the failures of a function by their invariants, and notes whether a judge has any.
func countFailures(t *testing.T, f *ast.FuncDecl, listed map[string]string, held map[string]int, judges map[string]bool) {
	t.Helper()
	judge := receiverOf(f)
	if strings.HasSuffix(judge, "Judge") {
		judges[judge] = judges[judge] || false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && listed[name.Name] != "" {
			held[name.Name]++
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); !ok || method.Sel.Name != "fail" {
			return true
		}
		name, ok := call.Args[0].(*ast.Ident)
		if !ok || listed[name.Name] == "" {
			t.Errorf("a failure in %s names no invariant of the list", f.Name.Name)
			return true
		}
		if strings.HasSuffix(judge, "Judge") {
			judges[judge] = true
		}
		return true
	})
}

func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	name, ok := of.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name
}
