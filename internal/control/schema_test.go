package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
)

var rewrite = flag.Bool("rewrite", false, "write the schemas of events anew")

// The checked-in schemas are what the Go types say, and no others lie there.
//
//behaviour:shows I1
func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	want := map[string][]byte{}
	for _, kind := range append(slices.Sorted(maps.Keys(eventKinds())), envelope) {
		s, err := schemaOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Join("schemas", kind+".json")] = append(raw, '\n')
	}
	if *rewrite {
		for path, raw := range want {
			if err := os.WriteFile(path, raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob("schemas/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if want[path] == nil {
			t.Errorf("%s is the schema of nothing", path)
		}
	}
	for path, raw := range want {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%s is not what the types say (%v): go test ./internal/control -rewrite", path, err)
		}
	}
}

var kindForm = regexp.MustCompile(`^[a-z]+\.[a-z_]+$`)

// Every kind that the code can publish is registered, and no other.
//
//behaviour:shows I1
func TestEveryKindIsRegistered(t *testing.T) {
	named, published := map[string]bool{}, map[string]bool{}
	registered := eventKinds()
	for _, text := range stringLiterals(t, "../../agent/event/event.go") {
		if !kindForm.MatchString(text) {
			continue
		}
		if named[text] = true; registered[text] == nil {
			t.Errorf("package event names the kind %q, and neither RunKinds nor NodeKinds has it", text)
		}
	}
	constants := map[string]string{}
	for kind := range registered {
		if !named[kind] {
			t.Errorf("kind %s is registered, and package event does not name it", kind)
		}
		name := "Kind"
		for _, word := range strings.FieldsFunc(kind, func(r rune) bool { return r == '.' || r == '_' }) {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		constants[name] = kind
	}
	for _, folder := range []string{"agent", "supervisor", "actors", "internal/activation", "internal/control", "internal/control/retention", "internal/control/schedules", "internal/node"} {
		files, err := filepath.Glob("../../" + folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", folder, err)
		}
		for _, path := range files {
			if !strings.HasSuffix(path, "_test.go") {
				for _, name := range selectorsOf(t, path, "event") {
					published[constants[name]] = true
				}
			}
		}
	}
	for kind := range registered {
		if !published[kind] {
			t.Errorf("kind %s is registered, and nothing publishes it", kind)
		}
	}
}

// selectorsOf returns the names of a package that a file uses.
func selectorsOf(t *testing.T, path, pkg string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == pkg {
				names = append(names, sel.Sel.Name)
			}
		}
		return true
	})
	return names
}

func stringLiterals(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

func TestValidateEventRefuses(t *testing.T) {
	good := `{"v":1,"id":"r.a#2.0","ts":"2026-01-02T03:04:05.000Z","run":"r","agent":"a","seq":2,"kind":"agent.resumed","data":{"phase":"acting","activation":"x"}}`
	if err := ValidateEvent([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"not JSON":          {`{"v"`, `{"v`},
		"not an object":     {good, `[]`},
		"another version":   {`"v":1`, `"v":2`},
		"no such kind":      {event.KindAgentResumed, `agent.exploded`},
		"another's data":    {event.KindAgentResumed, event.KindTurnStarted},
		"a missing field":   {`"phase":"acting",`, ``},
		"an unknown field":  {`"activation":"x"`, `"activation":"x","death":"y"`},
		"a wrong type":      {`"seq":2`, `"seq":"2"`},
		"no data":           {`,"data":{"phase":"acting","activation":"x"}`, ``},
		"a missing address": {`"run":"r",`, ``},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if err := ValidateEvent([]byte(bad)); !errors.Is(err, ErrEvent) || bad == good {
			t.Errorf("%s: %v", what, err)
		}
	}
}
