package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/troupe-run/troupe/"

// sourceFile is one Go file of the tree.
type sourceFile struct {
	path string // from the root, with slashes
	dir  string
	test bool
	text string
	ast  *ast.File
	fset *token.FileSet
}

// lineOf says where a node is.
func (f sourceFile) lineOf(n ast.Node) string {
	return f.path + ":" + strconv.Itoa(f.fset.Position(n.Pos()).Line)
}

// isBelow reports whether the file is in one of the folders or below it.
func (f sourceFile) isBelow(folders ...string) bool {
	for _, folder := range folders {
		if f.dir == folder || strings.HasPrefix(f.dir, folder+"/") {
			return true
		}
	}
	return false
}

// importSpecs are the paths that the file imports.
func (f sourceFile) importSpecs() map[string]*ast.ImportSpec {
	specs := map[string]*ast.ImportSpec{}
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			specs[p] = spec
		}
	}
	return specs
}

// root is the folder of go.mod.
const root = "../.."

// parseTree reads every Go file once.
var parseTree = sync.OnceValues(func() ([]sourceFile, error) {
	var files []sourceFile
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, rel, data, parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files, sourceFile{path: rel, dir: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), text: string(data), ast: parsed, fset: fset})
		return nil
	})
	return files, err
})

func readSources(t *testing.T) []sourceFile {
	t.Helper()
	files, err := parseTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files were found")
	}
	return files
}

// selectorParts is the package and name of a selector like time.Now; "" if the node
// is not one.
func selectorParts(n ast.Node) (from, name string) {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", sel.Sel.Name
	}
	return id.Name, sel.Sel.Name
}
