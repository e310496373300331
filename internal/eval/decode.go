package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/model/script"
)

// ErrCase is wrapped by every error about the content of a case file.
var ErrCase = errors.New("not a case")

// BadFile reports an error in a file: the place, the reason and how to fix it.
type BadFile struct {
	Path   string
	Line   int // 0: the whole file
	Text   string
	Remedy string
}

func (b *BadFile) Error() string {
	at := b.Path
	if b.Line > 0 {
		at += ":" + strconv.Itoa(b.Line)
	}
	return at + ": " + b.Text
}

// Unwrap makes every BadFile an ErrCase.
func (b *BadFile) Unwrap() error { return ErrCase }

const remedy = "docs/evals.md shows the form of a case"

// FileBytesMax bounds a file of cases.
const FileBytesMax = script.MaxBytes

// ParseCases reads the cases of a file: one, or a list of them, as YAML or JSON.
func ParseCases(path string, data []byte) ([]Case, error) {
	d := caseDecoder{path: path}
	if len(data) > FileBytesMax {
		return nil, d.badFile(0, "%d bytes, at most %d are read", len(data), FileBytesMax)
	}
	root, err := parseDocument(data)
	if err != nil {
		return nil, d.yamlError(err)
	}
	var cases []Case
	if root.Kind == yaml.SequenceNode {
		if err := decodeStrict(data, &cases); err != nil {
			return nil, d.yamlError(err)
		}
	} else {
		cases = make([]Case, 1)
		if err := decodeStrict(data, &cases[0]); err != nil {
			return nil, d.yamlError(err)
		}
	}
	for i := range cases {
		line := root.Line
		if root.Kind == yaml.SequenceNode {
			line = root.Content[i].Line
		}
		cases[i].Path = fmt.Sprintf("%s:%d", path, line)
		if err := d.prepareCase(&cases[i], line); err != nil {
			return nil, err
		}
	}
	return cases, nil
}

// parseDocument parses text to its one root node.
func parseDocument(data []byte) (root *yaml.Node, err error) {
	defer recoverParser(&err)
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty")
		}
		return nil, err
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document; write several cases as a list")
	}
	return doc.Content[0], nil
}

// recoverParser recovers a panic of the parser, which reads untrusted text.
func recoverParser(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the YAML parser failed: %v", p)
	}
}

func decodeStrict(data []byte, into any) (err error) {
	defer recoverParser(&err)
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	return dec.Decode(into)
}

type caseDecoder struct{ path string }

func (d caseDecoder) badFile(line int, format string, args ...any) error {
	return &BadFile{Path: d.path, Line: line, Text: fmt.Sprintf(format, args...), Remedy: remedy}
}

var (
	yamlLine  = lazyregexp.New(`line (\d+): `)
	yamlField = lazyregexp.New(`field (\S+) not found in type eval\.(\w+)`)
)

// yamlError turns the parser's first error into one with a position.
func (d caseDecoder) yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n  ")
	text, _, _ = strings.Cut(text, "\n")
	b := &BadFile{Path: d.path, Text: text, Remedy: remedy}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		b.Line, _ = strconv.Atoi(m[1]) // digits, as the pattern says
		b.Text = strings.Replace(text, m[0], "", 1)
	}
	if m := yamlField.FindStringSubmatch(text); m != nil {
		names := keysOf()[m[2]]
		b.Text = fmt.Sprintf("unknown key %q", m[1])
		b.Remedy = "the keys here are " + strings.Join(names, ", ")
		if near := config.NearestName(m[1], names); near != "" {
			b.Remedy = "did you mean " + near + "?"
		}
	}
	return b
}

// keysOf are the keys of each type of a case, by the type's name.
var keysOf = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, v := range []any{Case{}, MockAnswer{}, MockTool{}, Agent{}, Limits{}, Price{}, ScriptedHook{}, HookAnswer{}, Message{}, Intervention{}, Point{}, UserReply{}, RecordedHook{}, Expected{}, Child{}} {
		t := reflect.TypeOf(v)
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			if name != "" && name != "-" {
				all[t.Name()] = append(all[t.Name()], name)
			}
		}
		slices.Sort(all[t.Name()])
	}
	return all
})

// decodeInto decodes a part of a case into a type of the runtime, by its JSON names. Fields that
// the part omits keep their values.
func (d caseDecoder) decodeInto(n yaml.Node, what string, into any) error {
	if n.Kind == 0 {
		return nil
	}
	raw, err := asJSON(n)
	if err != nil {
		return d.badFile(n.Line, "%s: %v", what, err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		if name, ok := strings.CutPrefix(text, "unknown field "); ok {
			key, _ := strconv.Unquote(name) // the package quotes it
			return d.badFile(lineOf(&n, key), "%s: unknown key %s", what, name)
		}
		return d.badFile(n.Line, "%s: %s", what, text)
	}
	return nil
}

func asJSON(n yaml.Node) (raw []byte, err error) {
	defer recoverParser(&err)
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// lineOf finds the first occurrence of a key below a node.
func lineOf(n *yaml.Node, key string) int {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value == key {
			return c.Line
		}
	}
	for _, c := range n.Content {
		if line := lineOf(c, key); line > 0 {
			return line
		}
	}
	return 0
}

// readScript reads a script from its place in a case; a list is its default.
func (d caseDecoder) readScript(n yaml.Node, what string) (*script.Script, error) {
	if n.Kind == yaml.SequenceNode {
		list := n
		n = yaml.Node{Kind: yaml.MappingNode, Line: list.Line,
			Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: "default"}, &list}}
	}
	raw, err := yaml.Marshal(&n)
	if err != nil {
		return nil, d.badFile(n.Line, "%s: %v", what, err)
	}
	s, err := script.Parse(raw)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), script.ErrScript.Error()+": ")
		if m := yamlField.FindStringSubmatch(text); m != nil {
			return nil, d.badFile(lineOf(&n, m[1]), "%s: unknown key %q", what, m[1])
		}
		if key, ok := errors.AsType[*safefile.KeyError](err); ok { // its line is one of the part alone
			return nil, d.badFile(lineOf(&n, key.Key), "%s: unknown key %q", what, key.Key)
		}
		return nil, d.badFile(n.Line, "%s: %s", what, text)
	}
	for _, agents := range []map[string][]script.Reply{s.Agents, s.IDs} {
		for _, replies := range agents {
			renameCalls(replies)
		}
	}
	renameCalls(s.Default)
	return s, nil
}

func renameCalls(replies []script.Reply) {
	for _, r := range replies {
		for i := range r.Calls {
			r.Calls[i].Name = sanitizeName(r.Calls[i].Name)
		}
	}
}

var notInName = lazyregexp.New(`[^a-zA-Z0-9_-]`)

// sanitizeName returns a tool's name in a form that a provider accepts.
func sanitizeName(name string) string { return notInName.ReplaceAllString(name, "_") }

func sanitizeNames(names []string) []string {
	if names == nil {
		return nil
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = sanitizeName(n)
	}
	return out
}

func sanitizeKeys[T any](m map[string]T) map[string]T {
	out := make(map[string]T, len(m))
	for name, v := range m {
		out[sanitizeName(name)] = v
	}
	return out
}
