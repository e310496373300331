package activation

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sentOnly are the kinds that only actors send to each other.
var sentOnly = map[string]bool{
	"submitted": true, "granted": true, "denied": true, "allowance_recalled": true, "budget_frozen": true, "stop_allowed": true, "stop_vetoed": true,
	"status_asked": true, "rule_allowed": true, "permissions_narrowed": true, "time_limit_set": true, "log_verified": true,
	"reserve": true, "settle": true, "return_allowance": true, "delegate": true, "send": true, "messaged": true, "backlog": true, "allow_rule": true,
	"park": true, "unpark": true, "status": true, "propose_stop": true, "finish": true, "report_log": true, "verify_log": true,
}

// A fact that neither an own entry, nor a request, nor a message may hold would never count.
func TestEveryKindMayArrive(t *testing.T) {
	declared := map[string]bool{}
	for _, dir := range []string{"../../agent", "../../supervisor"} {
		for _, kind := range declaredKinds(t, dir) {
			declared[kind] = true
			if !isKnownKind(kind) {
				t.Errorf("no machine decodes the kind %q", kind)
			}
			if own, command := ownKinds[kind], commandKinds[kind]; own && command || (own || command) == sentOnly[kind] {
				t.Errorf("the kind %q: an own entry %v, a request %v, sent only %v: one of them", kind, own, command, sentOnly[kind])
			}
		}
	}
	for kind := range sentOnly {
		if !declared[kind] {
			t.Errorf("no fact has the kind %q", kind)
		}
	}
}

// declaredKinds are the words that the methods Kind of a package return.
func declaredKinds(t *testing.T, dir string) (kinds []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no code in %s: %v", dir, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); !ok || fn.Recv == nil || fn.Name.Name != "Kind" {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if kind, err := strconv.Unquote(lit.Value); err == nil {
						kinds = append(kinds, kind)
					}
				}
				return true
			})
		}
	}
	return kinds
}
