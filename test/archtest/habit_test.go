package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNoTestIsSkipped: a test that may be skipped is one that nobody runs.
func TestNoTestIsSkipped(t *testing.T) {
	testers := []string{"t", "b", "tb", "f"}
	for _, f := range readSources(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			from, name := selectorParts(n)
			if slices.Contains(testers, from) && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, name) {
				t.Errorf("%s calls %s.%s: nothing is skipped; what needs more than Go has a target of its own", f.lineOf(n), from, name)
			}
			if from == "testing" && (name == "Short" || name == "Testing") {
				t.Errorf("%s calls testing.%s: there is one way to run the tests", f.lineOf(n), name)
			}
			return true
		})
	}
}

// TestTestsDoNotSleep: a test that sleeps is slow or wrong, on some machine both.
func TestTestsDoNotSleep(t *testing.T) {
	for _, f := range readSources(t) {
		if !f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if from, name := selectorParts(n); from == "time" && name == "Sleep" {
				t.Errorf("%s sleeps: wait for what should happen instead", f.lineOf(n))
			}
			return true
		})
	}
}

// TestExpressionsAreCompiledAtTheirFirstUse: a program that starts compiles no regular expression that it may never need.
// The packages of pure may not import what has a lock.
func TestExpressionsAreCompiledAtTheirFirstUse(t *testing.T) {
	for _, f := range readSources(t) {
		if _, isPure := pure[f.dir]; f.test || isPure || f.isBelow("internal/test") || f.isBelow("test") || f.isBelow("build") {
			continue
		}
		for _, d := range f.ast.Decls {
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			ast.Inspect(vars, func(n ast.Node) bool {
				if from, name := selectorParts(n); from == "regexp" && name == "MustCompile" {
					t.Errorf("%s calls regexp.MustCompile: lazyregexp.New does not delay each start", f.lineOf(n))
				}
				_, isFunc := n.(*ast.FuncLit)
				return !isFunc
			})
		}
	}
}

// TestActorsUseNoChannelsAndLocks: in the shells there is one way of doing things at the same
// time: `go work(ctx)`, then Send to self. A single channel or lock, and the
// argument that an actor has one reader is over.
func TestActorsUseNoChannelsAndLocks(t *testing.T) {
	for _, f := range readSources(t) {
		if !f.isBelow("actors") || f.test {
			continue
		}
		for p, spec := range f.importSpecs() {
			if p == "sync" || strings.HasPrefix(p, "sync/") || strings.HasPrefix(p, "golang.org/x/sync") {
				t.Errorf("%s imports %s: actors share nothing, so they lock nothing", f.lineOf(spec), p)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if what := forbiddenIdiom(n); what != "" {
				t.Errorf("%s: %s in actors; use `go work(ctx)`, then Send to self", f.lineOf(n), what)
			}
			return true
		})
	}
}

// forbiddenIdiom names what a node does that the shells do without.
func forbiddenIdiom(n ast.Node) string {
	switch n := n.(type) {
	case *ast.ChanType:
		return "a channel"
	case *ast.SelectStmt:
		return "a select"
	case *ast.SendStmt:
		return "a send to a channel"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive from a channel"
		}
	case *ast.SelectorExpr:
		switch name := n.Sel.Name; {
		case name == "StopFuture": // the one who stops a node is no actor, and waits
		case strings.HasSuffix(name, "Future"), name == "ReenterAfter", name == "AwaitFuture":
			return name
		}
	}
	return ""
}

// TestChannelsAndLocksAreFound: the rule sees what it is about.
func TestChannelsAndLocksAreFound(t *testing.T) {
	for code, want := range map[string]string{
		"var c chan int":                     "a channel",
		"func f() { select {} }":             "a select",
		"func f() { c <- 1 }":                "a send to a channel",
		"func f() { <-c }":                   "a receive from a channel",
		"func f() { x.RequestFuture(1, 2) }": "RequestFuture",
		"func f() { x.ReenterAfter(1, 2) }":  "ReenterAfter",
		"func f() { go work(ctx) }":          "",
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		ast.Inspect(parsed, func(n ast.Node) bool {
			if what := forbiddenIdiom(n); what != "" {
				got = what
			}
			return true
		})
		if got != want {
			t.Errorf("%s: found %q, want %q", code, got, want)
		}
	}
}

// TestSubjects: every subject and stream name is made in internal/bus, so that one file
// shows them all.
func TestSubjects(t *testing.T) {
	subject := regexp.MustCompile(`^troupe\.(box|evt|cmd|prompt|status|hb|[%*>{])|^agents\.`)
	for _, f := range readSources(t) {
		if f.isBelow("internal/bus") || f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			var parts []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				if from, name := selectorParts(n.Fun); from != "fmt" || !strings.HasPrefix(name, "Sprint") {
					return true
				}
				parts = n.Args
			case *ast.BinaryExpr:
				parts = []ast.Expr{n.X, n.Y}
			}
			for _, part := range parts {
				lit, ok := part.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					continue
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && subject.MatchString(text) {
					t.Errorf("%s builds a subject from %q: subjects are made in internal/bus only", f.lineOf(lit), text)
				}
			}
			return true
		})
	}
}

// TestNoUnfinishedCode: what is not built is in docs/behaviours.md under "Not
// yet", not in the code.
func TestNoUnfinishedCode(t *testing.T) {
	word := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	for _, f := range readSources(t) {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if m := word.FindString(c.Text); m != "" {
					t.Errorf("%s: a %s; build it, or name it in docs/behaviours.md", f.lineOf(c), m)
				}
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			id, ok := call.Fun.(*ast.Ident)
			lit, text := call.Args[0].(*ast.BasicLit)
			if ok && text && id.Name == "panic" && strings.Contains(strings.ToLower(lit.Value), "not implemented") {
				t.Errorf("%s: panics as not implemented; a door that is not built does not exist", f.lineOf(call))
			}
			return true
		})
	}
}
