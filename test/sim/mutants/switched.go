package main

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// chosenMutant is the environment variable that names the mutant which a switched program plays.
const chosenMutant = "SIM_MUTANT"

// switchFile is added to each package that has mutants. It reads the environment.
const switchFile = "chosen_mutant.go"

// switched is a program with many mutants in it, so that they share one build: a function that a mutant changes has a
// copy with the change, and begins by calling that copy if the environment names the mutant.
type switched struct {
	edits map[*source][]splice // of the functions themselves
	tails map[*source]string   // the copies, for the end of each file
	names map[string]bool      // of the mutants in it
}

func newSwitched() *switched {
	return &switched{edits: map[*source][]splice{}, tails: map[*source]string{}, names: map[string]bool{}}
}

// add puts a mutant into the program. It returns false if the mutant needs a build of its own, because it changes more
// than bodies of declared functions.
func (p *switched) add(m Mutant, sites map[string]*site) (bool, error) {
	changes, err := changesOf(m, sites)
	if err != nil {
		return false, err
	}
	bodies := map[*ast.FuncDecl]*source{}
	edits := map[*ast.FuncDecl][]splice{}
	for f, list := range changes {
		for _, c := range list {
			fn := f.functionAround(c)
			if fn == nil {
				return false, nil
			}
			bodies[fn], edits[fn] = f, append(edits[fn], c)
		}
	}
	for fn, f := range bodies {
		if err := p.addCopy(m.Name, f, fn, edits[fn]); err != nil {
			return false, err
		}
	}
	p.names[m.Name] = true
	return true, nil
}

// addCopy adds the copy of one function with the changes of a mutant.
func (p *switched) addCopy(mutant string, f *source, fn *ast.FuncDecl, changes []splice) error {
	from, to := f.offset(fn.Pos()), f.offset(fn.End())
	name := splice{f.offset(fn.Name.Pos()), f.offset(fn.Name.End()), fn.Name.Name + "_" + strings.NewReplacer("-", "_", "'", "").Replace(mutant)}
	text, err := f.spliceWithin(from, to, append(slices.Clone(changes), name))
	if err != nil {
		return err
	}
	p.tails[f] += "\n" + string(text) + "\n"
	named, call := f.callOf(fn, name.text)
	for _, n := range named {
		if !slices.Contains(p.edits[f], n) { // another mutant of this function has named its parameters
			p.edits[f] = append(p.edits[f], n)
		}
	}
	brace := f.offset(fn.Body.Lbrace) + 1
	p.edits[f] = append(p.edits[f], splice{brace, brace, fmt.Sprintf("\nif chosenMutant == %q {\n%s\n}\n", mutant, call)})
	return nil
}

// callOf returns the statements that pass the arguments of a function to another of the same signature, and the edits
// that give names to its nameless parameters.
func (f *source) callOf(fn *ast.FuncDecl, name string) (named []splice, call string) {
	var args []string
	nameArguments := func(fields []*ast.Field) {
		for _, field := range fields {
			dots := ""
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				dots = "..."
			}
			if len(field.Names) == 0 {
				at := f.offset(field.Type.Pos())
				arg := fmt.Sprintf("arg%d", len(args))
				named, args = append(named, splice{at, at, arg + " "}), append(args, arg+dots)
			}
			for _, n := range field.Names {
				arg := n.Name
				if arg == "_" {
					arg = fmt.Sprintf("arg%d", len(args))
					named = append(named, splice{f.offset(n.Pos()), f.offset(n.End()), arg})
				}
				args = append(args, arg+dots)
			}
		}
	}
	if fn.Recv != nil {
		nameArguments(fn.Recv.List)
		name, args = args[0]+"."+name, nil
	}
	if fn.Type.TypeParams != nil {
		var types []string
		for _, field := range fn.Type.TypeParams.List {
			for _, n := range field.Names {
				types = append(types, n.Name)
			}
		}
		name += "[" + strings.Join(types, ", ") + "]"
	}
	nameArguments(fn.Type.Params.List)
	call = name + "(" + strings.Join(args, ", ") + ")"
	if fn.Type.Results == nil {
		return named, call + "\nreturn"
	}
	return named, "return " + call
}

// functionAround returns the declared function whose body holds a change.
func (f *source) functionAround(c splice) *ast.FuncDecl {
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if ok && fn.Body != nil && f.offset(fn.Body.Lbrace) < c.from && c.to <= f.offset(fn.Body.Rbrace) {
			return fn
		}
	}
	return nil
}

// texts returns the changed files by their paths, with one more file for each package, which reads the environment.
func (p *switched) texts() (map[string][]byte, error) {
	texts := map[string][]byte{}
	for f, edits := range p.edits {
		text, err := f.splice(edits)
		if err != nil {
			return nil, err
		}
		texts[f.path] = append(text, p.tails[f]...)
		texts[path.Join(path.Dir(f.path), switchFile)] = fmt.Appendf(nil,
			"package %s\n\nimport \"os\"\n\nvar chosenMutant = os.Getenv(%q)\n", f.ast.Name.Name, chosenMutant)
	}
	return texts, nil
}
