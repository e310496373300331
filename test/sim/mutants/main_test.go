package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPatchesApply: each mutant finds its sites and compiles, and each marker
// belongs to a mutant. After a rename of what a text of the table names, this
// test names the mutant.
func TestPatchesApply(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	sites, err := findSites(root)
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]*site{}
	for name, s := range sites {
		unused[name] = s
	}
	check := newChecker(t, root, sites)
	names := map[string]bool{}
	for _, m := range all() {
		if names[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		names[m.Name] = true
		texts, err := patch(m, sites)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		for file, text := range texts {
			if err := check.compiles(file, text); err != nil {
				t.Errorf("%s: the mutant does not compile: %v", m.Name, err)
			}
		}
		for _, e := range m.Edits {
			delete(unused, siteName(m, e))
		}
	}
	for name := range noticedBy {
		if !names[name] {
			t.Errorf("noticedBy names tests for %s, which is no mutant", name)
		}
	}
	for name, s := range unused {
		t.Errorf("%s: no mutant edits //mutant:%s: remove the marker or add the mutant", s.position(), name)
	}
}

// checker type-checks changed files. The functions of the other files of a
// package have no bodies, so that a check takes milliseconds.
type checker struct {
	fset     *token.FileSet
	importer types.Importer
	files    map[string]map[string]*ast.File // of a folder, by name
	literals map[string]bool                 // the strings of the program, quoted
}

// invented are strings of the table that the program does not have.
var invented = []string{`"call_%d"`, `"see above"`, `"again"`}

// newChecker reads the packages that have sites.
func newChecker(t *testing.T, root string, sites map[string]*site) *checker {
	dirs := map[string]bool{}
	for _, s := range sites {
		dirs["./"+path.Dir(s.file.path)] = true
	}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{join .GoFiles \" \"}}"}
	for dir := range dirs {
		args = append(args, dir)
	}
	list := exec.Command("go", args...)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{fset: token.NewFileSet(), files: map[string]map[string]*ast.File{}, literals: map[string]bool{}}
	for _, text := range invented {
		c.literals[text] = true
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[f[0]] = f[1]
		rel, err := filepath.Rel(root, f[2])
		if err != nil || !dirs["./"+filepath.ToSlash(rel)] {
			continue
		}
		for _, name := range strings.Fields(f[3]) {
			c.addFile(t, filepath.ToSlash(rel), filepath.Join(f[2], name))
		}
	}
	c.importer = importer.ForCompiler(c.fset, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })
	return c
}

// addFile reads a file of a package without the bodies of its functions.
func (c *checker) addFile(t *testing.T, dir, name string) {
	f, err := parser.ParseFile(c.fset, name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	inspectStrings(f, func(text string) { c.literals[text] = true })
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			fn.Body = nil
		}
	}
	if c.files[dir] == nil {
		c.files[dir] = map[string]*ast.File{}
	}
	c.files[dir][filepath.Base(name)] = f
}

// inspectStrings visits the string literals of a file.
func inspectStrings(f *ast.File, visit func(text string)) {
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			visit(lit.Value)
		}
		return true
	})
}

// compiles returns an error of a changed file. A string that the program does
// not have is an error: for example the old kind of an entry whose kind was renamed.
func (c *checker) compiles(file string, text []byte) error {
	changed, err := parser.ParseFile(c.fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	inspectStrings(changed, func(text string) {
		if !c.literals[text] {
			err = fmt.Errorf("the string %s occurs nowhere else: if it was renamed, rename it in the table", text)
		}
	})
	if err != nil {
		return err
	}
	files := []*ast.File{changed}
	for name, f := range c.files[path.Dir(file)] {
		if name != path.Base(file) {
			files = append(files, f)
		}
	}
	var found []error
	conf := types.Config{Importer: c.importer, Error: func(err error) {
		if e, ok := err.(types.Error); ok && c.fset.Position(e.Pos).Filename == file { // the others have no bodies
			found = append(found, err)
		}
	}}
	_, err = conf.Check(path.Dir(file), c.fset, files, nil)
	if len(found) > 0 {
		return found[0]
	}
	if len(files) < 2 {
		return fmt.Errorf("%s was checked without its package: %w", file, err)
	}
	return nil
}

// TestCheckOfMutantSitesFindsStaleTexts: the test above notices a text that no longer fits.
func TestCheckOfMutantSitesFindsStaleTexts(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	sites, err := findSites(root)
	if err != nil {
		t.Fatal(err)
	}
	check := newChecker(t, root, sites)
	for _, c := range []struct {
		edit Edit
		want string
	}{
		{Edit{"queue-drained", Never}, ""},
		{Edit{"queue-drained", AndAlso("s.Renamed == nil")}, "s.Renamed undefined"},
		{Edit{"queue-overtaken", InsertAfter("it.Renamed()")}, "it.Renamed undefined"},
		{Edit{"queue-overtaken", Drop}, "undefined: it"},
		{Edit{"read-before", AndAlso(`item.Kind != "renamed kind"`)}, "\"renamed kind\" occurs nowhere else"},
		{Edit{"queue-overtaken", InsertAfter("unused := 1")}, "declared and not used: unused"},
		{Edit{"queue-overtaken", InsertAfter("(")}, "expected"},
		{Edit{"no-such-site", Drop}, "no line is marked //mutant:no-such-site"},
		{Edit{"queue-drained", Without(1, 9)}, "no condition of 9 terms"},
	} {
		texts, err := patch(Mutant{Name: "trial", Edits: []Edit{c.edit}}, sites)
		for file, text := range texts {
			err = check.compiles(file, text)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.edit.Site, err, c.want)
		}
	}
}

// TestOperations: what each operation makes of a line.
func TestOperations(t *testing.T) {
	for _, c := range []struct {
		code string // the first line is marked
		do   Operation
		want string
	}{
		{"f()", Drop, ""},
		{"if a && b {\nf()\n}", Never, "if false && (a && b) {\nf()\n}"},
		{"if x := f(); a {\n}", Never, "if x := f(); false && (a) {\n}"},
		{"for a {\n}", Never, "for false && (a) {\n}"},
		{"for range f() {\n}", Never, "for range f()[:0] {\n}"},
		{"if a || b {\n}", Always, "if (true || a || b) {\n}"},
		{"switch {\ncase a, b: //mutant:here\nf()\n}", Never, "switch {\ncase false && (a), false && (b): //mutant:here\nf()\n}"},
		{"switch {\ncase a: //mutant:here\nf()\ncase b:\n}", Drop, "switch {\n\ncase b:\n}"},
		{"switch c {\ncase a, b: //mutant:here\n}", Without(2, 2), "switch c {\ncase a: //mutant:here\n}"},
		{"if a || b {\n}", AndAlso("c"), "if (a || b) && c {\n}"},
		{"if a && b && c {\n}", Without(1, 3), "if b && c {\n}"},
		{"if a && b && c {\n}", Without(2, 3), "if a && c {\n}"},
		{"if a && b && c {\n}", Without(3, 3), "if a && b {\n}"},
		{"if a && b && c {\n}", Without(1, 2), "error: no condition of 2 terms"},
		{"if a && b && c {\n}", Without(4, 3), "error: there cannot be a term 4 of 3"},
		{"if a && (b || c || d) {\n}", Without(2, 3), "if a && (b || d) {\n}"},
		{"if a && (b || c) {\n}", Without(2, 2), "if a {\n}"},
		{"if a && (b || c) {\n}", Within(2, 2, Without(1, 2)), "if a && (c) {\n}"},
		{"if a && (b || c) {\n}", Within(1, 2, Always), "if (true || a) && (b || c) {\n}"},
		{"if x := a && b; c && d {\n}", Without(1, 2), "if x := a && b; d {\n}"},
		{"if a {\nif b && c {\n}\n}", Without(1, 2), "error: no condition of 2 terms"},
		{"if a {\n}", ReplaceTerm(1, 1, "c"), "if c {\n}"},
		{"if a && b {\n}", ReplaceTerm(2, 2, "c"), "if a && c {\n}"},
		{"if a && n >= m {\n}", Raise("1"), "if a && n >= m + (1) {\n}"},
		{"if n == m {\n}", Raise("1"), "error: it has no <"},
		{"x := T{A: 1, B: 2}", DropField("A"), "x := T{B: 2}"},
		{"x := T{A: 1, B: 2}", DropField("B"), "x := T{A: 1}"},
		{"x := T{A: 1}", DropField("A"), "x := T{}"},
		{"x := T{A: 1}", DropField("B"), "error: 0 literals have a field B"},
		{"f()", Unchanged, "return s, nil"},
		{"f()", Replace("g()"), "g()"},
		{"if x := f(); x {\n}", ReplaceInit("x := g()"), "if x := g(); x {\n}"},
		{"f()", InsertBefore("g()"), "g()\nf()"},
		{"f()", InsertAfter("g()"), "f()\ng()"},
		{"f()", Never, "error: a *ast.ExprStmt has no condition"},
		{"x, y := a, b", Never, "error: a *ast.AssignStmt has no condition"},
	} {
		got := operate(t, c.code, c.do)
		if text, ok := strings.CutPrefix(c.want, "error: "); ok && strings.Contains(got, text) {
			continue
		}
		if got != c.want {
			t.Errorf("%q becomes %q, want %q", c.code, got, c.want)
		}
	}
}

// operate returns code after an operation, or its error.
func operate(t *testing.T, code string, do Operation) string {
	const head, tail = "package p\n\nfunc (s State) step(n int) (State, []Effect) {\n", "\n}\n"
	if !strings.Contains(code, "//mutant:") {
		first, rest, _ := strings.Cut(code, "\n")
		code = strings.TrimSuffix(first+" //mutant:here\n"+rest, "\n")
	}
	name := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(name, []byte(head+code+tail), 0o644); err != nil {
		t.Fatal(err)
	}
	sites := map[string]*site{}
	if err := readSites(sites, name, "p.go"); err != nil {
		t.Fatal(err)
	}
	texts, err := patch(Mutant{Name: "trial", Edits: []Edit{{"here", do}}}, sites)
	if err != nil {
		return err.Error()
	}
	got := strings.TrimSuffix(strings.TrimPrefix(string(texts["p.go"]), head), tail)
	if strings.Contains(code, "\ncase") {
		return got
	}
	lines := strings.Split(got, "\n")
	for i, line := range lines {
		line, _, _ = strings.Cut(line, "//")
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}
