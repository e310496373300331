package rule

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assigners are builtins that assign to variables that their arguments name, or run
// a text among their arguments.
var assigners = strings.Fields("compgen complete declare export getopts let local mapfile read readarray readonly typeset")

// evaluators are the other builtins for which a shell may evaluate an argument: bash
// and zsh run the substitutions in a subscript, a[$(cmd)], however it is quoted.
var evaluators = strings.Fields("[ break continue dirs exit fc history jobs kill popd printf pushd return set shift suspend test times trap ulimit umask unset wait")

// isPlainBuiltin reports whether a builtin with these literal arguments does no more
// than its name says. It is true for every program that is not a builtin.
func isPlainBuiltin(words []string) bool {
	name, args := words[0], words[1:]
	subscripts := slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "[") })
	switch {
	case slices.Contains(assigners, name):
		return false
	case name == "printf":
		// A bracket in a format is common; it is a subscript only behind -v, or for %d with
		// a substitution in it (zsh).
		return !assignsByPrintf(args) && !(subscripts && strings.ContainsAny(strings.Join(args, ""), "$`"))
	case slices.Contains(evaluators, name):
		return !subscripts
	}
	return true
}

func assignsByPrintf(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], "-v")
}

// lineFacts are facts about a whole command line.
type lineFacts struct {
	hidden    bool // a quoted text holds a substitution that nothing runs yet
	evaluates bool // the value of a variable, or a quoted text, is evaluated
	functions bool // names of programs may mean functions
}

func factsOf(file *syntax.File) (f lineFacts) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			f.hidden = f.hidden || holdsSubstitution(strings.ReplaceAll(n.Value, `\`, ""))
		case *syntax.SglQuoted:
			f.hidden = f.hidden || n.Dollar && strings.Contains(n.Value, `\`) || holdsSubstitution(n.Value)
		case *syntax.FuncDecl:
			f.functions = true
		default:
			f.evaluates = f.evaluates || evaluatesText(n)
		}
		return true
	})
	return f
}

// holdsSubstitution reports whether a text would run a command if a shell evaluated
// it, alone or joined to another one.
func holdsSubstitution(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "${") || strings.Contains(text, "`") || strings.HasSuffix(text, "$")
}

// evaluatesText reports whether a node of a command line evaluates texts: arithmetic,
// subscripts, indirect names and the builtins that do.
func evaluatesText(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		return true
	case *syntax.UnaryTest:
		return n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar
	case *syntax.BinaryTest:
		return slices.Contains([]syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}, n.Op)
	case *syntax.ParamExp:
		return n.Excl || n.Slice != nil || n.Index != nil || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps
	case *syntax.Assign:
		return n.Index != nil
	case *syntax.DeclClause:
		return slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool { return a.Naked && a.Value != nil })
	case *syntax.CallExpr:
		if len(n.Args) == 0 {
			return false
		}
		name := sayWord(n.Args[0]).text
		return slices.Contains(assigners, name) || slices.Contains(evaluators, name)
	}
	return false
}
