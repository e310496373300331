package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// marker is the directive at the end of a line that names a site.
var marker = regexp.MustCompile(`//mutant:(\S+)$`)

// site is a marked node of the program: the statement, case clause or function
// that begins on the line of the marker.
type site struct {
	name string
	file *source
	node ast.Node
}

// source is a parsed file that has markers.
type source struct {
	path string // relative to the module's root, with slashes
	text []byte
	fset *token.FileSet
	ast  *ast.File
}

// findSites returns the marked sites of the tree by their names.
func findSites(root string) (map[string]*site, error) {
	sites := map[string]*site{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == ownDir) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		return readSites(sites, name, rel)
	})
	return sites, err
}

// ownDir is the package of this command, whose comments quote markers.
const ownDir = "test/sim/mutants"

// readSites adds the sites of one file.
func readSites(sites map[string]*site, name, rel string) error {
	text, err := os.ReadFile(name)
	if err != nil || !bytes.Contains(text, []byte("//mutant:")) {
		return err
	}
	f := &source{path: rel, text: text, fset: token.NewFileSet()}
	if f.ast, err = parser.ParseFile(f.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return err
	}
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			found := marker.FindStringSubmatch(c.Text)
			if found == nil {
				continue
			}
			at := f.fset.Position(c.Pos())
			if other := sites[found[1]]; other != nil {
				return fmt.Errorf("%s and %s are both marked //mutant:%s: rename one of them", other.position(), at, found[1])
			}
			n := f.nodeAt(at.Line)
			if n == nil {
				return fmt.Errorf("%s: no statement begins on the line of //mutant:%s: move the marker", at, found[1])
			}
			sites[found[1]] = &site{found[1], f, n}
		}
	}
	return nil
}

// nodeAt returns the outermost markable node that begins on a line.
func (f *source) nodeAt(line int) (found ast.Node) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if n == nil || found != nil {
			return false
		}
		switch n.(type) {
		case *ast.File, *ast.BlockStmt: // a marker never means a block
		case ast.Stmt, *ast.FuncDecl:
			if f.line(n.Pos()) == line {
				found = n
			}
		}
		return found == nil
	})
	return found
}

// line returns the line of a position.
func (f *source) line(p token.Pos) int { return f.fset.Position(p).Line }

// offset returns a position as an offset in the text.
func (f *source) offset(p token.Pos) int { return f.fset.Position(p).Offset }

// position returns the place of the node in the source.
func (s *site) position() token.Position { return s.file.fset.Position(s.node.Pos()) }

// span returns the offsets of a node in the text.
func (s *site) span(n ast.Node) (from, to int) {
	return s.file.offset(n.Pos()), s.file.offset(n.End())
}

// textOf returns the source of a node.
func (f *source) textOf(n ast.Node) string {
	return string(f.text[f.offset(n.Pos()):f.offset(n.End())])
}

// enclosingFunc returns the declared function that a node is in.
func (f *source) enclosingFunc(n ast.Node) *ast.FuncDecl {
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Pos() <= n.Pos() && n.End() <= fn.End() {
			return fn
		}
	}
	return nil
}

// statement returns the marked node, or the statement of a function that is
// written on one line.
func (s *site) statement() ast.Node {
	fn, ok := s.node.(*ast.FuncDecl)
	if ok && fn.Body != nil && len(fn.Body.List) == 1 && s.file.line(fn.Pos()) == s.file.line(fn.End()) {
		return fn.Body.List[0]
	}
	return s.node
}

// conditions returns the expressions that decide at the site: a condition, the
// list of a case clause, the one value that is returned or assigned.
func (s *site) conditions() (list []ast.Expr) {
	switch n := s.statement().(type) {
	case *ast.IfStmt:
		list = []ast.Expr{n.Cond}
	case *ast.ForStmt:
		list = []ast.Expr{n.Cond}
	case *ast.CaseClause:
		list = n.List
	case *ast.ReturnStmt:
		list = n.Results
	case *ast.AssignStmt:
		list = n.Rhs
	case ast.Expr:
		list = []ast.Expr{n}
	}
	if _, ok := s.node.(*ast.CaseClause); !ok && (len(list) != 1 || list[0] == nil) {
		return nil
	}
	return list
}

// inspectHead walks the node without its body: first the condition, then the rest.
func (s *site) inspectHead(visit func(ast.Node) bool) {
	for _, c := range s.conditions() {
		ast.Inspect(c, visit)
	}
	if _, ok := s.node.(*ast.CaseClause); ok {
		return
	}
	ast.Inspect(s.statement(), func(n ast.Node) bool {
		if _, ok := n.(*ast.BlockStmt); ok || n == nil {
			return false
		}
		return visit(n)
	})
}
