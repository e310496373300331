package archtest

import (
	"go/ast"
	"slices"
	"testing"
)

// TestSignaturesOfAgentSayWhoWrites: a handler of package agent gets the one State of its step by pointer, so its
// signature says whether it changes it. Who returns a *State may have changed what it got; who returns none only reads.
func TestSignaturesOfAgentSayWhoWrites(t *testing.T) {
	writers, readers := map[string]bool{}, 0
	var inAgent []sourceFile
	for _, f := range readSources(t) {
		if f.dir == "agent" && !f.test {
			inAgent = append(inAgent, f)
			eachFunc(f, func(fn *ast.FuncDecl) {
				writers[fn.Name.Name] = returnsState(fn) && !slices.Contains(copiers, fn.Name.Name)
			})
		}
	}
	for _, f := range inAgent {
		eachFunc(f, func(fn *ast.FuncDecl) {
			if returnsState(fn) {
				return
			}
			for _, s := range statesOf(fn) {
				readers++
				for _, write := range writesTo(fn.Body, s, writers) {
					t.Errorf("%s: %s writes to %s, so it should return the *State", f.lineOf(write), fn.Name.Name, s)
				}
			}
		})
	}
	if readers == 0 {
		t.Fatal("no function reads a *State")
	}
}

// copiers return a *State of their own.
var copiers = []string{"copyOf", "trialCopy"}

func eachFunc(f sourceFile, do func(*ast.FuncDecl)) {
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			do(fn)
		}
	}
}

// statesOf returns the names of the parameters of type *State, the receiver among them.
func statesOf(fn *ast.FuncDecl) []string {
	fields := fn.Type.Params.List
	if fn.Recv != nil {
		fields = append(fields[:len(fields):len(fields)], fn.Recv.List...)
	}
	var names []string
	for _, field := range fields {
		if !isStatePointer(field.Type) {
			continue
		}
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

func returnsState(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil {
		return false
	}
	for _, r := range fn.Type.Results.List {
		if isStatePointer(r.Type) {
			return true
		}
	}
	return false
}

func isStatePointer(x ast.Expr) bool {
	p, ok := x.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := p.X.(*ast.Ident)
	return ok && name.Name == "State"
}

// writesTo returns the assignments to a part of the variable, the events that are published in it, and where a writer
// gets it.
func writesTo(body *ast.BlockStmt, variable string, writers map[string]bool) []ast.Node {
	var writes []ast.Node
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if partOf(to, variable) {
					writes = append(writes, n)
				}
			}
		case *ast.IncDecStmt:
			if partOf(n.X, variable) {
				writes = append(writes, n)
			}
		case *ast.CallExpr:
			if publishesIn(n, variable) || passesToWriter(n, variable, writers) {
				writes = append(writes, n)
			}
		}
		return true
	})
	return writes
}

// publishesIn recognizes s.events.publish….
func publishesIn(call *ast.CallExpr, variable string) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	events, ok := method.X.(*ast.SelectorExpr)
	return ok && events.Sel.Name == "events" && partOf(events, variable)
}

// passesToWriter recognizes write(s, …) and s.write(…).
func passesToWriter(call *ast.CallExpr, variable string, writers map[string]bool) bool {
	isVariable := func(x ast.Expr) bool {
		name, ok := x.(*ast.Ident)
		return ok && name.Name == variable
	}
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return writers[fn.Name] && slices.ContainsFunc(call.Args, isVariable)
	case *ast.SelectorExpr:
		return writers[fn.Sel.Name] && isVariable(fn.X)
	}
	return false
}

// partOf reports whether an expression names a field of the variable, or something in one.
func partOf(x ast.Expr, variable string) bool {
	part := false
	for {
		switch of := x.(type) {
		case *ast.SelectorExpr:
			x, part = of.X, true
		case *ast.IndexExpr:
			x, part = of.X, true
		case *ast.StarExpr:
			x, part = of.X, true
		case *ast.Ident:
			return part && of.Name == variable
		default:
			return false
		}
	}
}
