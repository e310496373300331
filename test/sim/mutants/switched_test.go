package main

import (
	"go/parser"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// program has functions of all shapes that a switched program must call with their arguments, and one mutant in each.
const program = `package main

import "fmt"

type list[T any] struct{ all []T }

func (l list[T]) size(_ int, more ...T) int {
	return len(l.all) + len(more) //mutant:method
}

func first[K comparable, T any](by map[K]T, key K) (found T, ok bool) {
	found, ok = by[key] //mutant:generic
	return found, ok
}

type silent struct{}

func (silent) String() string { return "silent" } //mutant:nameless

func nothing(int, *int) {
	fmt.Println("prints") //mutant:no-result
	fmt.Println("twice") //mutant:second-of-one-function
}

func even(n int) bool { return n == 0 || !even(n-1) } //mutant:recursive

func unused() { //mutant:whole-function
	even(0)
}

func main() {
	size := list[int]{[]int{1}}.size(7, 2, 3)
	found, ok := first(map[string]int{"a": 1}, "a")
	fmt.Println(size, found, ok, silent{}, even(4))
	nothing(1, nil)
}
`

// TestMutantsShareOneProgram: a switched program plays each of its mutants when the environment names it, and none otherwise.
func TestMutantsShareOneProgram(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "main.go")
	for file, text := range map[string]string{"main.go": program, "go.mod": "module p\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sites := map[string]*site{}
	if err := readSites(sites, name, "main.go"); err != nil {
		t.Fatal(err)
	}
	const unchanged = "3 1 true silent true\nprints\ntwice\n"
	cases := []struct {
		mutant string
		do     Operation
		want   string
	}{
		{"none", nil, unchanged},
		{"method", Replace("return 100 + len(more)"), strings.Replace(unchanged, "3", "102", 1)},
		{"generic", Drop, strings.Replace(unchanged, "1 true", "0 false", 1)},
		{"nameless", Replace(`return "loud"`), strings.Replace(unchanged, "silent", "loud", 1)},
		{"no-result", Drop, strings.Replace(unchanged, "prints\n", "", 1)},
		{"second-of-one-function", Drop, strings.Replace(unchanged, "twice\n", "", 1)},
		{"recursive", Never, strings.Replace(unchanged, "true\nprints", "false\nprints", 1)},
	}
	p := newSwitched()
	for _, c := range cases[1:] {
		if fits, err := p.add(Mutant{Name: c.mutant, Edits: own(c.do)}, sites); err != nil || !fits {
			t.Fatalf("%s: in the program %v, error %v", c.mutant, fits, err)
		}
	}
	if fits, err := p.add(Mutant{Name: "whole-function", Edits: own(Drop)}, sites); err != nil || fits {
		t.Errorf("a mutant without a function is in the program (%v), error %v", fits, err)
	}
	texts, err := p.texts()
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "program", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, texts["main.go"])
	}
	for _, c := range cases {
		run := exec.Command(filepath.Join(dir, "program"))
		run.Env = append(os.Environ(), chosenMutant+"="+c.mutant)
		out, err := run.CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: the program prints %q, want %q, error %v", c.mutant, out, c.want, err)
		}
	}
}

// TestFewMutantsNeedTheirOwnBuild: a build takes longer than most mutants live.
func TestFewMutantsNeedTheirOwnBuild(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	sites, err := findSites(root)
	if err != nil {
		t.Fatal(err)
	}
	p := newSwitched()
	var alone []string
	for _, m := range all()[1:] {
		if fits, err := p.add(m, sites); err != nil || !fits {
			alone = append(alone, m.Name)
		}
	}
	texts, err := p.texts()
	if err != nil {
		t.Fatal(err)
	}
	check := newChecker(t, root, sites)
	check.literals[strconv.Quote(chosenMutant)] = true
	for name := range p.names {
		check.literals[strconv.Quote(name)] = true
	}
	for file, text := range texts {
		if path.Base(file) == switchFile {
			parsed, err := parser.ParseFile(check.fset, file, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			check.files[path.Dir(file)][switchFile] = parsed
		}
	}
	for file, text := range texts {
		if path.Base(file) == switchFile { // it has nothing of the table
			continue
		}
		if err := check.compiles(file, text); err != nil {
			t.Errorf("the program does not compile: %v", err)
		}
	}
	t.Logf("%d mutants share a program, alone: %q", len(p.names), alone)
	if limit := len(all()) / 20; len(alone) > limit {
		t.Errorf("%d mutants need builds of their own, at most %d may: %q", len(alone), limit, alone)
	}
}
