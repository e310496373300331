package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	// FileBytesMax bounds a policy file.
	FileBytesMax = 128 << 10
	depthMax     = 16 // levels of a document
)

// ErrFile is wrapped by every error about a policy file.
var ErrFile = errors.New("policy file")

// FileError says where a policy file is wrong.
type FileError struct {
	Path string
	Line int // 0: the whole file
	Err  error
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, reasonOf(e.Err))
	}
	return e.Path + ": " + reasonOf(e.Err)
}

// Unwrap returns the reason, and ErrFile.
func (e *FileError) Unwrap() []error { return []error{ErrFile, e.Err} }

// reasonOf drops the word that names the package: the place is named already.
func reasonOf(err error) string {
	return strings.TrimPrefix(err.Error(), supervisor.ErrPolicy.Error()+": ")
}

// Read reads a policy file of the user.
func Read(path string) (supervisor.Policy, error) {
	data, err := safefile.Read(path, FileBytesMax)
	if err != nil {
		return supervisor.Policy{}, &FileError{Path: path, Err: safefile.WithoutName(err)}
	}
	return Parse(path, data)
}

// ReadBelow reads a policy file that a directory names: it follows no link that leads out of the directory.
func ReadBelow(dir, name string) (supervisor.Policy, error) {
	data, err := safefile.ReadBelow(dir, name, FileBytesMax)
	if err != nil {
		return supervisor.Policy{}, &FileError{Path: name, Err: safefile.WithoutName(err)}
	}
	return Parse(name, data)
}

// Parse reads a policy in YAML or JSON: a mapping with the keys version and rules, or the list of rules alone. path is
// for messages.
func Parse(path string, data []byte) (p supervisor.Policy, err error) {
	if len(data) > FileBytesMax {
		return p, &FileError{Path: path, Err: fmt.Errorf("it has %d bytes, at most %d are read", len(data), FileBytesMax)}
	}
	root, err := parseYAML(data)
	if err != nil {
		return p, &FileError{Path: path, Err: err}
	}
	p, lines, err := readDocument(path, root)
	if err != nil {
		return p, err
	}
	compiled, err := Compile(p)
	if bad := (*RuleError)(nil); errors.As(err, &bad) {
		return p, &FileError{Path: path, Line: lines[bad.Index], Err: errors.New(strings.TrimPrefix(bad.Error(), "policy: "))}
	}
	if err != nil {
		return p, &FileError{Path: path, Err: err}
	}
	return compiled, nil
}

var errYAML = errors.New("the YAML parser failed")

func parseYAML(data []byte) (root *yaml.Node, err error) {
	defer func() { // the parser might panic on a hostile text
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errYAML, p)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty: a policy has a list of rules")
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if d.Decode(&yaml.Node{}) == nil {
		return nil, errors.New("it has several documents, and a policy is one")
	}
	return doc.Content[0], nil
}

// readDocument reads the mapping of a policy, with the line of each rule.
func readDocument(path string, root *yaml.Node) (p supervisor.Policy, lines []int, err error) {
	bad := func(n *yaml.Node, format string, args ...any) (supervisor.Policy, []int, error) {
		return p, nil, &FileError{path, n.Line, fmt.Errorf(format, args...)}
	}
	if n, what := findForbidden(root, 0); n != nil {
		return bad(n, "%s", what)
	}
	rules := root
	if root.Kind == yaml.MappingNode {
		rules = nil
		for i := 0; i+1 < len(root.Content); i += 2 {
			switch key, value := root.Content[i], root.Content[i+1]; key.Value {
			case "version":
				if err := value.Decode(&p.Version); err != nil {
					return bad(value, "version is %.40q, it must be a whole number", value.Value)
				}
			case "rules":
				rules = value
			default:
				return bad(key, "unknown key %.40q; a policy has version and rules", key.Value)
			}
		}
	}
	if rules == nil || rules.Kind != yaml.SequenceNode {
		return bad(root,
			"a policy has a list of rules: {version: 1, rules: [{name: cite, on: stop, when: '!contains(answer, "+
				"\"report.md\")', why: ...}]}")
	}
	for _, n := range rules.Content {
		var r supervisor.Rule
		var tree any
		if err := n.Decode(&tree); err != nil {
			return bad(n, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		text, err := json.Marshal(tree)
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return bad(n, "%s", reasonOf(err))
		}
		p.Rules, lines = append(p.Rules, r), append(lines, n.Line)
	}
	return p, lines, nil
}

// findForbidden finds what a policy does not need and an attacker does: aliases, which make small files large, and
// deep nesting.
func findForbidden(n *yaml.Node, depth int) (*yaml.Node, string) {
	if n.Kind == yaml.AliasNode {
		return n, "YAML aliases (*name) are not allowed; write the value again"
	}
	if depth > depthMax {
		return n, fmt.Sprintf("it is nested more than %d levels deep", depthMax)
	}
	for _, c := range n.Content {
		if n, what := findForbidden(c, depth+1); n != nil {
			return n, what
		}
	}
	return nil, ""
}

// idForm is the form of the ids of agents in a run.
var idForm = lazyregexp.New(`^` + string(spec.Root) + `(-[0-9]+)*$`)

// ParseAgent reads the policy of an agent file: its rules are about that agent only.
func ParseAgent(path, agent string, data []byte) (supervisor.Policy, error) {
	p, err := Parse(path, data)
	if err != nil {
		return p, err
	}
	if idForm.MatchString(agent) {
		return p, &FileError{Path: path, Err: fmt.Errorf("%q is the id that an agent gets in a run, so that rules of an agent with this name would be about another one, too: rename the agent", agent)}
	}
	for i, r := range p.Rules {
		if r.Agent != "" && r.Agent != agent {
			return p, &FileError{Path: path, Err: fmt.Errorf("rule %.80q is about the agent %.80q: an agent file has rules about its own agent only: leave agent out", r.Name, r.Agent)}
		}
		p.Rules[i].Agent = agent
	}
	return p, nil
}

// ReadSettings reads the policy in the settings of a directory: their rules as JSON text, or the file below the
// directory that they name. path is that of the settings, for messages.
func ReadSettings(path, dir, text, file string) (supervisor.Policy, error) {
	switch {
	case filepath.IsAbs(file):
		return supervisor.Policy{}, &FileError{Path: path, Err: errors.New("a directory can only name files below it, by a relative path")}
	case file != "":
		return ReadBelow(dir, file)
	case text != "":
		return Parse(path, []byte(text))
	}
	return supervisor.Policy{}, nil
}
