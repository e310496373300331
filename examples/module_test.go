package examples_test

import (
	"bytes"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// keysInEnvironment are the beginnings of names of variables that would let an example use a model or a state directory
// of this machine.
var keysInEnvironment = []string{"ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_", "OLLAMA_", "TROUPE_", "XDG_", "HOME="}

// The examples use public packages only: copied into a module of its own, which finds troupe in this tree, each
// builds, runs without a key, and prints what its test says. A workspace shares what was compiled of this tree; a module
// that replaces troupe would compile all of it again. All examples are one program, which does what the example of its
// name does: to link each of them takes longer than everything else here, and its own test links it already.
func TestExamplesBuildFromAnotherModule(t *testing.T) {
	t.Parallel()
	tree, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	module, home := t.TempDir(), t.TempDir()
	names := append(copyExamples(t, module), documented)
	writeFile(t, filepath.Join(module, documented, "main.go"), asPackage(documented, readProgram(t)))
	writeFile(t, filepath.Join(module, "main.go"), programOf(names))
	gomod := fmt.Sprintf("module example.org/programs\n\ngo %s\n\nrequire github.com/troupe-run/troupe v0.0.0\n", goVersion(t))
	writeFile(t, filepath.Join(module, "go.mod"), []byte(gomod))
	writeFile(t, filepath.Join(module, "go.work"), []byte(fmt.Sprintf("go %s\n\nuse .\nuse %s\n\nreplace github.com/troupe-run/troupe v0.0.0 => %s\n", goVersion(t), tree, tree)))
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", "all", ".") // without symbols: it links faster
	build.Dir, build.Env = module, append(os.Environ(), "GOWORK="+filepath.Join(module, "go.work"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(module, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(module, "bin", name)
			if err := os.Link(filepath.Join(module, "all"), program); err != nil {
				t.Fatal(err)
			}
			run := exec.CommandContext(t.Context(), program)
			run.Dir, run.Env = t.TempDir(), append(keylessEnvironment(), "HOME="+home)
			var stderr bytes.Buffer
			run.Stderr = &stderr
			out, err := run.Output()
			if want := wantedOutput(t, name); err != nil || strings.TrimSpace(string(out)) != want {
				t.Errorf("%v\n%s\nit prints\n%s\nand should print\n%s", err, stderr.Bytes(), out, want)
			}
		})
	}
}

// documented is the program of docs/firsthour.md, and what it prints.
const (
	documented     = "clerk"
	documentedText = "We have 12 bolts. <nil>"
	documentedMax  = 30 // lines
)

// readProgram returns the program of docs/firsthour.md.
func readProgram(t *testing.T) []byte {
	t.Helper()
	text := string(readFile(t, "../docs/firsthour.md"))
	_, rest, found := strings.Cut(text, "\n```go\n")
	program, rest, closed := strings.Cut(rest, "\n```\n")
	if lines := strings.Count(program, "\n") + 1; !found || !closed || lines > documentedMax || !strings.Contains(rest, documentedText) {
		t.Errorf("docs/firsthour.md has no program of at most %d lines with its output: %d lines", documentedMax, lines)
	}
	return []byte(program + "\n")
}

// copyExamples copies the sources of each example, without its tests, and returns their names.
func copyExamples(t *testing.T, module string) (names []string) {
	t.Helper()
	sources, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		switch {
		case strings.HasSuffix(source, "_test.go"):
			continue
		case filepath.Base(source) == "main.go":
			names = append(names, filepath.Dir(source))
		}
		writeFile(t, filepath.Join(module, source), asPackage(filepath.Dir(source), readFile(t, source)))
	}
	if len(names) < 8 {
		t.Fatalf("%d examples were found: %v", len(names), names)
	}
	return names
}

// asPackage makes a file of a program one of a package that a program can import.
func asPackage(name string, source []byte) []byte {
	source = bytes.Replace(source, []byte("package main\n"), []byte("package "+name+"\n"), 1)
	return bytes.Replace(source, []byte("\nfunc main() {"), []byte("\n// Main is the program.\nfunc Main() {"), 1)
}

// programOf is a program that does what the program of its name does.
func programOf(names []string) []byte {
	var imports, cases strings.Builder
	for _, name := range names {
		fmt.Fprintf(&imports, "\t%q\n", "example.org/programs/"+name)
		fmt.Fprintf(&cases, "\tcase %q:\n\t\t%s.Main()\n", name, name)
	}
	return fmt.Appendf(nil, "package main\n\nimport (\n\t\"os\"\n\t\"path/filepath\"\n\n%s)\n\nfunc main() {\n\tswitch filepath.Base(os.Args[0]) {\n%s\tdefault:\n\t\tpanic(os.Args[0])\n\t}\n}\n",
		imports.String(), cases.String())
}

// goVersion is the version of Go that the tree asks for.
func goVersion(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(string(readFile(t, "../go.mod"))) {
		if version, ok := strings.CutPrefix(line, "go "); ok {
			return strings.TrimSpace(version)
		}
	}
	t.Fatal("go.mod names no version of Go")
	return ""
}

// keylessEnvironment is the environment of this process without what would change an example.
func keylessEnvironment() (env []string) {
	for _, v := range os.Environ() {
		kept := true
		for _, prefix := range keysInEnvironment {
			kept = kept && !strings.HasPrefix(v, prefix)
		}
		if kept {
			env = append(env, v)
		}
	}
	return env
}

// wantedOutput is the output that the Example in the test of an example names.
func wantedOutput(t *testing.T, name string) string {
	t.Helper()
	if name == documented {
		return documentedText
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(name, "main_test.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	examples := doc.Examples(f)
	if len(examples) != 1 || examples[0].Output == "" {
		t.Fatalf("the test of %s has %d examples, or one without output", name, len(examples))
	}
	return strings.TrimSpace(examples[0].Output)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
