package policy

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/internal/suggest"
	"github.com/troupe-run/troupe/supervisor"
)

// An expression has the syntax of Go, which go/parser reads: `contains(answer, "not sure") && tokens > 40_000`. It
// becomes a disjunction of lists of conditions. There are no other functions than these, no variables and no loops:
// an expression has no more conditions than it has text, and deciding costs a pass over them.

// expressionBytesMax bounds an expression, and so the depth of its tree.
const expressionBytesMax = supervisor.RuleTextMax

// textFunctions are the functions of a text fact, with their operator and the operator of their opposite.
var textFunctions = map[string][2]string{"contains": {"contains", "lacks"}, "matches": {"matches", "differs"}}

// comparisons are the operators of numbers with their operator in conditions, their opposite, and their mirror image.
var comparisons = map[token.Token][3]string{
	token.LSS: {"<", ">=", ">"}, token.LEQ: {"<=", ">", ">="}, token.GTR: {">", "<=", "<"}, token.GEQ: {">=", "<", "<="},
	token.EQL: {"=", "!=", "="}, token.NEQ: {"!=", "=", "!="},
}

// anyOf is a disjunction of conjunctions.
type anyOf = [][]supervisor.Condition

// parseExpression reads an expression.
func parseExpression(text string) (anyOf, error) {
	if len(text) > expressionBytesMax {
		return nil, fmt.Errorf("the expression has %d bytes, at most %d are allowed: use several rules", len(text), expressionBytesMax)
	}
	root, err := parser.ParseExpr(text)
	if err != nil {
		return nil, explainSyntax(text, err)
	}
	lists, err := readExpression(root, false)
	if at := (*positionError)(nil); errors.As(err, &at) {
		return nil, fmt.Errorf("column %d of the expression: %w", at.at, at.err)
	}
	return lists, err
}

// positionError is an error at a column of the expression.
type positionError struct {
	at  token.Pos
	err error
}

func (e *positionError) Error() string { return e.err.Error() }

func badAt(n ast.Node, format string, args ...any) (anyOf, error) {
	return nil, &positionError{n.Pos(), fmt.Errorf(format, args...)}
}

// explainSyntax says where an expression cannot be read, and how it is written.
func explainSyntax(text string, err error) error {
	const form = `write it as in Go: contains(answer, "text") && tokens > 40_000`
	list := scanner.ErrorList{}
	if !errors.As(err, &list) || len(list) == 0 {
		return fmt.Errorf("the expression cannot be read: %w; %s", err, form)
	}
	if strings.Contains(text, "'") {
		return fmt.Errorf("column %d of the expression: %s; texts are in double quotes or `backquotes`, and %s", list[0].Pos.Column, list[0].Msg, form)
	}
	return fmt.Errorf("column %d of the expression: %s; %s", list[0].Pos.Column, list[0].Msg, form)
}

// readExpression reads a condition, or its opposite.
func readExpression(n ast.Expr, negated bool) (anyOf, error) {
	switch e := n.(type) {
	case *ast.ParenExpr:
		return readExpression(e.X, negated)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return readExpression(e.X, !negated)
		}
	case *ast.CallExpr:
		return readCall(e, negated)
	case *ast.BinaryExpr:
		switch {
		case e.Op == token.LAND || e.Op == token.LOR:
			return readJunction(e, negated)
		case comparisons[e.Op] != [3]string{}:
			return readComparison(e, negated)
		}
		return badAt(e, "%s makes a number, a rule needs a comparison", e.Op)
	}
	return badAt(n, "a rule needs comparisons of facts, such as turns > 3, joined by && and ||")
}

// readJunction reads && and ||.
func readJunction(e *ast.BinaryExpr, negated bool) (anyOf, error) {
	x, err := readExpression(e.X, negated)
	if err != nil {
		return nil, err
	}
	y, err := readExpression(e.Y, negated)
	if err != nil {
		return nil, err
	}
	if (e.Op == token.LOR) != negated {
		return checkSize(e, slices.Concat(x, y))
	}
	if len(x)*len(y) > supervisor.ConditionsMax {
		return checkSize(e, make(anyOf, len(x)*len(y)))
	}
	var out anyOf
	for _, a := range x {
		for _, b := range y {
			out = append(out, slices.Concat(a, b))
		}
	}
	return checkSize(e, out)
}

// checkSize refuses a disjunction that is too large.
func checkSize(e ast.Expr, lists anyOf) (anyOf, error) {
	n := 0
	for _, list := range lists {
		n += max(1, len(list))
	}
	if n > supervisor.ConditionsMax {
		return badAt(e, "it has %d conditions when it is written as alternatives, at most %d are allowed: use several rules", n, supervisor.ConditionsMax)
	}
	return lists, nil
}

// readCall reads contains(answer, "x"), matches(answer, "x") and has(results, "x").
func readCall(e *ast.CallExpr, negated bool) (anyOf, error) {
	name, _ := e.Fun.(*ast.Ident)
	if name == nil {
		return badAt(e, "a function is contains, matches or has")
	}
	ops, isText := textFunctions[name.Name]
	fact := "results"
	if !isText && name.Name != "has" {
		return badAt(e, "unknown function %.40q; the functions are contains, matches and has", name.Name)
	}
	if len(e.Args) != 2 {
		return badAt(e, "%s takes two arguments: a fact and a text", name.Name)
	}
	if isText {
		facts := supervisor.TextFacts()
		id, ok := e.Args[0].(*ast.Ident)
		if !ok || !slices.Contains(facts, id.Name) {
			return badAt(e.Args[0], "%s is of one of the texts %s", name.Name, strings.Join(facts, ", "))
		}
		fact = id.Name
	} else {
		ops = [2]string{"has", "lacks"}
		if id, ok := e.Args[0].(*ast.Ident); !ok || id.Name != fact {
			return badAt(e.Args[0], "has is of results: has(results, \"read_file\")")
		}
	}
	text, ok := readText(e.Args[1])
	if !ok {
		return badAt(e.Args[1], "the second argument of %s is a text in double quotes or `backquotes`", name.Name)
	}
	op := ops[0]
	if negated {
		op = ops[1]
	}
	return anyOf{{{Fact: fact, Op: op, Text: text}}}, nil
}

// readComparison reads a fact that is compared with a number or a text, in either order.
func readComparison(e *ast.BinaryExpr, negated bool) (anyOf, error) {
	words := comparisons[e.Op]
	op := words[0]
	id, isFact := e.X.(*ast.Ident)
	value := e.Y
	if !isFact {
		if id, isFact = e.Y.(*ast.Ident); !isFact {
			return badAt(e, "one side of %s is a fact: %s", e.Op, strings.Join(slices.Concat(supervisor.NumberFacts(), supervisor.TextFacts()), ", "))
		}
		op, value = words[2], e.X
	}
	if negated {
		op = opposite(op)
	}
	if slices.Contains(supervisor.TextFacts(), id.Name) {
		return compareText(e, id.Name, value, op)
	}
	if !slices.Contains(supervisor.NumberFacts(), id.Name) {
		names := slices.Concat(supervisor.NumberFacts(), supervisor.TextFacts())
		if near := suggest.Nearest(id.Name, names); near != "" {
			return badAt(id, "unknown fact %.40q; did you mean %s?", id.Name, near)
		}
		return badAt(id, "unknown fact %.40q; the facts are %s", id.Name, strings.Join(append(names, "results"), ", "))
	}
	number, ok := readNumber(value)
	if !ok {
		return badAt(value, "%s is compared with a number, such as 40_000 or 10 * 60 * 1000", id.Name)
	}
	return anyOf{{{Fact: id.Name, Op: op, Number: number}}}, nil
}

func compareText(e *ast.BinaryExpr, fact string, value ast.Expr, op string) (anyOf, error) {
	text, ok := readText(value)
	words := map[string]string{"=": "is", "!=": "isnt"}
	if !ok || words[op] == "" {
		return badAt(e, "%s is a text: compare it by == or != with one in double quotes, or use contains and matches", fact)
	}
	return anyOf{{{Fact: fact, Op: words[op], Text: text}}}, nil
}

// opposite returns the operator that holds exactly if another does not.
func opposite(op string) string {
	for _, words := range comparisons {
		if words[0] == op {
			return words[1]
		}
	}
	return op
}

func readText(n ast.Expr) (string, bool) {
	l, ok := n.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// readNumber reads a number, or a calculation with numbers alone.
func readNumber(n ast.Expr) (v float64, ok bool) {
	switch e := n.(type) {
	case *ast.ParenExpr:
		return readNumber(e.X)
	case *ast.UnaryExpr:
		v, ok = readNumber(e.X)
		return -v, ok && e.Op == token.SUB
	case *ast.BasicLit:
		if e.Kind != token.INT && e.Kind != token.FLOAT {
			return 0, false
		}
		text := strings.ReplaceAll(e.Value, "_", "")
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil && !math.IsInf(v, 0)
	case *ast.BinaryExpr:
		x, okX := readNumber(e.X)
		y, okY := readNumber(e.Y)
		switch e.Op {
		case token.ADD:
			v = x + y
		case token.SUB:
			v = x - y
		case token.MUL:
			v = x * y
		case token.QUO:
			v = x / y
		default:
			return 0, false
		}
		return v, okX && okY && !math.IsInf(v, 0) && !math.IsNaN(v)
	}
	return 0, false
}
