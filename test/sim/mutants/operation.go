package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// Operation changes the node of a site. It returns the changes of the text.
type Operation func(s *site) ([]splice, error)

// splice replaces the bytes from..to of a file.
type splice struct {
	from, to int
	text     string
}

// Drop deletes the statement or the case clause.
func Drop(s *site) ([]splice, error) { return Replace("")(s) }

// Never makes the condition false. A range loop gets an empty slice.
func Never(s *site) ([]splice, error) {
	if loop, ok := s.node.(*ast.RangeStmt); ok {
		_, to := s.span(loop.X)
		return []splice{{to, to, "[:0]"}}, nil
	}
	return s.wrapConditions("false && (", ")")
}

// Always makes the condition true.
func Always(s *site) ([]splice, error) { return s.wrapConditions("(true || ", ")") }

// AndAlso adds a term to the condition, or to each case of a list.
func AndAlso(term string) Operation {
	return func(s *site) ([]splice, error) { return s.wrapConditions("(", ") && "+term) }
}

// Without deletes the k-th of n terms of a condition (see findTerms).
func Without(k, n int) Operation {
	return func(s *site) ([]splice, error) {
		terms, err := s.findTerms(k, n)
		if err != nil {
			return nil, err
		}
		from, to := s.span(terms[k-1])
		if k > 1 {
			_, from = s.span(terms[k-2])
		} else if n > 1 {
			to, _ = s.span(terms[k])
		}
		return []splice{{from, to, ""}}, nil
	}
}

// Within applies an operation to the k-th of n terms.
func Within(k, n int, inner Operation) Operation {
	return func(s *site) ([]splice, error) {
		terms, err := s.findTerms(k, n)
		if err != nil {
			return nil, err
		}
		return inner(&site{s.name, s.file, terms[k-1]})
	}
}

// ReplaceTerm replaces the k-th of n terms. Term 1 of 1 is the whole condition.
func ReplaceTerm(k, n int, text string) Operation { return Within(k, n, Replace(text)) }

// Raise adds a number to the right side of the last <, <=, > or >=.
func Raise(by string) Operation {
	return func(s *site) ([]splice, error) {
		var right ast.Expr
		order := []token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ}
		s.inspectHead(func(n ast.Node) bool {
			if e, ok := n.(*ast.BinaryExpr); ok && slices.Contains(order, e.Op) {
				right = e.Y
			}
			return true
		})
		if right == nil {
			return nil, fmt.Errorf("it has no <, <=, > or >=")
		}
		_, to := s.span(right)
		return []splice{{to, to, " + (" + by + ")"}}, nil
	}
}

// DropField leaves a field out of a composite literal.
func DropField(name string) Operation {
	return func(s *site) (found []splice, err error) {
		ast.Inspect(s.node, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			for i, e := range lit.Elts {
				field, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				if key, ok := field.Key.(*ast.Ident); !ok || key.Name != name {
					continue
				}
				from, to := s.span(field)
				if i > 0 {
					_, from = s.span(lit.Elts[i-1])
				} else if len(lit.Elts) > 1 {
					to, _ = s.span(lit.Elts[1])
				}
				found = append(found, splice{from, to, ""})
			}
			return true
		})
		if len(found) != 1 {
			return nil, fmt.Errorf("%d literals have a field %s, want one", len(found), name)
		}
		return found, nil
	}
}

// Unchanged replaces the statement by a return of the receiver, or of the first
// parameter with the type of the first result, and nil for the other results.
func Unchanged(s *site) ([]splice, error) {
	fn := s.file.enclosingFunc(s.node)
	if fn == nil || fn.Type.Results == nil {
		return nil, fmt.Errorf("it is not in a function with results")
	}
	want, text := s.file.textOf(fn.Type.Results.List[0].Type), ""
	params := fn.Type.Params.List
	if fn.Recv != nil {
		params = slices.Concat(fn.Recv.List, params)
	}
	for _, p := range params {
		if text == "" && len(p.Names) > 0 && s.file.textOf(p.Type) == want {
			text = "return " + p.Names[0].Name
		}
	}
	if text == "" {
		return nil, fmt.Errorf("%s has no parameter of type %s to return", fn.Name.Name, want)
	}
	for range fn.Type.Results.NumFields() - 1 {
		text += ", nil"
	}
	return Replace(text)(s)
}

// Replace puts a text in the place of the statement.
func Replace(text string) Operation {
	return func(s *site) ([]splice, error) {
		from, to := s.span(s.statement())
		return []splice{{from, to, text}}, nil
	}
}

// ReplaceInit replaces the init statement of an if.
func ReplaceInit(text string) Operation {
	return func(s *site) ([]splice, error) {
		branch, ok := s.node.(*ast.IfStmt)
		if !ok || branch.Init == nil {
			return nil, fmt.Errorf("it is not an if with an init statement")
		}
		return Replace(text)(&site{s.name, s.file, branch.Init})
	}
}

// InsertBefore puts statements, or a case clause, before the marked one.
func InsertBefore(text string) Operation {
	return func(s *site) ([]splice, error) {
		from, _ := s.span(s.statement())
		return []splice{{from, from, text + "\n"}}, nil
	}
}

// InsertAfter puts statements after the marked one, or a case clause after the
// last statement of another clause.
func InsertAfter(text string) Operation {
	return func(s *site) ([]splice, error) {
		_, to := s.span(s.statement())
		return []splice{{to, to, "\n" + text}}, nil
	}
}

// wrapConditions puts texts around each expression of the site's condition.
func (s *site) wrapConditions(before, after string) (changes []splice, err error) {
	conditions := s.conditions()
	if len(conditions) == 0 {
		return nil, fmt.Errorf("a %T has no condition", s.node)
	}
	for _, c := range conditions {
		from, to := s.span(c)
		changes = append(changes, splice{from, from, before}, splice{to, to, after})
	}
	return changes, nil
}

// findTerms returns the n terms of the first chain of && or || that has n terms.
// The condition is searched before the rest of the statement's head, and an
// outer chain before the chains inside it. Term 1 of 1 is the whole condition.
// If no chain has n terms, the cases of a list of n are the terms. The number
// is required so that a condition with a new term fails TestPatchesApply: the
// mutant may have to change.
func (s *site) findTerms(k, n int) (terms []ast.Expr, err error) {
	if k < 1 || k > n {
		return nil, fmt.Errorf("there cannot be a term %d of %d", k, n)
	}
	if conditions := s.conditions(); n == 1 && len(conditions) == 1 {
		return conditions, nil
	}
	inner := map[ast.Node]bool{} // parts of a chain that are not all of it
	s.inspectHead(func(x ast.Node) bool {
		if e, ok := x.(*ast.BinaryExpr); ok && (e.Op == token.LAND || e.Op == token.LOR) && !inner[e] {
			if list := flattenChain(e, e.Op, inner); len(list) == n && terms == nil {
				terms = list
			}
		}
		return true
	})
	if conditions := s.conditions(); terms == nil && len(conditions) == n {
		terms = conditions
	}
	if terms == nil {
		return nil, fmt.Errorf("it has no condition of %d terms", n)
	}
	return terms, nil
}

// flattenChain returns the terms of a chain of one operator, and notes its parts in inner.
func flattenChain(e ast.Expr, op token.Token, inner map[ast.Node]bool) []ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == op {
		inner[b] = true
		return append(flattenChain(b.X, op, inner), flattenChain(b.Y, op, inner)...)
	}
	return []ast.Expr{e}
}
