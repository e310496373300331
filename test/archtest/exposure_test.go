package archtest

import (
	"go/ast"
	"testing"
)

// hidesNode are the packages that others import and that start a node. adapter may hold one: no exported type has it in
// a field.
var hidesNode = map[string]string{".": "inProcess", "internal/cli/session": ""}

// A field or a signature of these packages that has the type of a node would have the compiler generate the parts of a
// whole NATS server for each package that imports them.
func TestTypesOfPublicPackagesHideTheNode(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range readSources(t) {
		adapter, ok := hidesNode[f.dir]
		if !ok || f.test {
			continue
		}
		seen[f.dir] = true
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				return n.Name.Name != adapter
			case *ast.BlockStmt, *ast.ImportSpec:
				return false // what a function does is its own matter
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "node" && (n.Sel.Name == "Node" || n.Sel.Name == "TaskRun") {
					t.Errorf("%s: %s.%s in a type or a signature: use an interface", f.lineOf(n), pkg.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
	if len(seen) != len(hidesNode) {
		t.Errorf("only %v were read", seen)
	}
}
