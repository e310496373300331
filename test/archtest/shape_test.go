package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// Limits of shape.
const (
	fileLinesMax = 400
	testLinesMax = 800
	funcLinesMax = 70
	methodsMax   = 28
)

// TestFileSize: a file that outgrows its limit holds two ideas.
func TestFileSize(t *testing.T) {
	for _, f := range readSources(t) {
		lines, most := strings.Count(f.text, "\n"), fileLinesMax
		if f.test {
			most = testLinesMax
		}
		if lines > most {
			t.Errorf("%s has %d lines, at most %d: it holds more than one idea", f.path, lines, most)
		}
	}
}

// TestFuncSize: a function fits on a screen.
func TestFuncSize(t *testing.T) {
	for _, f := range readSources(t) {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1; n > funcLinesMax {
				t.Errorf("%s: %s has %d lines, at most %d: it must fit on a screen", f.lineOf(fn), fn.Name.Name, n, funcLinesMax)
			}
		}
	}
}

// methodsOfLarger are the types that have more methods than methodsMax and are not split yet. None may grow.
var methodsOfLarger = map[string]int{
	"actors.router": 34, "actors.shell": 32, "budget.Pool": 33, "client.Client": 40,
	"internal/activation.LogReader": 36, "internal/bus/embedded.Server": 34, "internal/bus/names.Names": 40,
	"internal/cli/request.Flags": 30, "internal/cli/run.Commands": 34, "internal/cluster.Owner": 29,
	"internal/logstore/local.Store": 33, "internal/term.Tree": 29, "internal/throttle.Throttle": 32,
	"internal/toolset.Builder": 31, "test/chaos.servers": 31,
}

// TestMethodSets: a type with more methods has several jobs.
func TestMethodSets(t *testing.T) {
	count := map[string]int{}
	for _, f := range readSources(t) {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || f.test || fn.Recv == nil {
				continue
			}
			of := fn.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			if name, ok := of.(*ast.Ident); ok {
				count[f.dir+"."+name.Name]++
			}
		}
	}
	if len(count) == 0 {
		t.Fatal("no methods were found")
	}
	for name, n := range count {
		if most := max(methodsMax, methodsOfLarger[name]); n > most {
			t.Errorf("%s has %d methods, at most %d: split its jobs", name, n, most)
		}
	}
}

// TestPackageComment: each package says what it is, in one place.
func TestPackageComment(t *testing.T) {
	said := map[string][]string{}
	for _, f := range readSources(t) {
		if f.test {
			continue
		}
		key := f.dir + " " + f.ast.Name.Name
		if said[key] == nil {
			said[key] = []string{}
		}
		if f.ast.Doc == nil {
			continue
		}
		said[key] = append(said[key], f.path)
		text, want := f.ast.Doc.Text(), "Package "+f.ast.Name.Name+" "
		command := f.ast.Name.Name == "main" && strings.HasPrefix(text, "Command ")
		if !strings.HasPrefix(text, want) && !command {
			t.Errorf("%s: the package comment should begin with %q", f.path, want)
		}
	}
	for key, files := range said {
		dir, name, _ := strings.Cut(key, " ")
		if len(files) != 1 {
			t.Errorf("%s: package %s has %d package comments %v, it should have one", dir, name, len(files), files)
		}
	}
}

// TestPackageNames: a package is a noun of the domain, not a drawer.
func TestPackageNames(t *testing.T) {
	drawers := []string{"types", "common", "util", "utils", "core", "events", "pkg", "helpers", "base", "misc"}
	for _, f := range readSources(t) {
		for _, name := range []string{strings.TrimSuffix(f.ast.Name.Name, "_test"), path.Base(f.dir)} {
			if slices.Contains(drawers, name) {
				t.Errorf("%s: package %q is a drawer; a type lives beside its use", f.path, name)
			}
		}
	}
}
