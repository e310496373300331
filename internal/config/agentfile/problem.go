package agentfile

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Problem explains why a file, or a value in it, cannot be used.
type Problem struct {
	Path string
	Line int // 0: the file as a whole
	Err  error
}

func (p *Problem) Error() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Err.Error()
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Err)
}

func (p *Problem) Unwrap() error { return p.Err }

// Text returns the problem without its position.
func (p *Problem) Text() string { return strings.TrimPrefix(p.Err.Error(), "agentfile: ") }

// Sentence returns the problem with its position, for a person who reads one line.
func (p *Problem) Sentence() string {
	text := strings.TrimPrefix(p.Text(), strings.TrimPrefix(ErrField.Error(), "agentfile: ")+": ")
	switch {
	case p.Path == "":
		return text
	case p.Line == 0:
		return p.Path + ": " + text
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, text)
}

// Sentences joins the problems of an error of Parse or Load.
func Sentences(err error) string {
	var list []string
	for _, p := range SplitProblems(err) {
		list = append(list, p.Sentence())
	}
	return strings.Join(list, "; ")
}

// SplitProblems splits the error of Parse or Load into its problems, in order. A problem without
// a file has an empty path.
func SplitProblems(err error) []*Problem {
	if err == nil {
		return nil
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var list []*Problem
		for _, e := range all.Unwrap() {
			list = append(list, SplitProblems(e)...)
		}
		return list
	}
	var p *Problem
	if errors.As(err, &p) {
		return []*Problem{p}
	}
	return []*Problem{{Err: err}}
}

// addLines gives each problem that has no line the one of the key that its text begins with.
func addLines(err error, data []byte) {
	root, parseErr := parseDocument(data)
	if parseErr != nil {
		return
	}
	for _, p := range SplitProblems(err) {
		if p.Line > 0 || p.Path == "" {
			continue
		}
		text := strings.TrimPrefix(p.Text(), strings.TrimPrefix(ErrField.Error(), "agentfile: ")+": ")
		key, _, _ := strings.Cut(text, ":")
		p.Line = lineOfKey(root, strings.Split(key, "."))
	}
}

// lineOfKey returns the line of a key, given with the keys that it is below; 0: the document does not have it.
func lineOfKey(n *yaml.Node, path []string) int {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		switch key := n.Content[i]; {
		case key.Value != path[0]:
		case len(path) == 1:
			return key.Line
		default:
			return lineOfKey(n.Content[i+1], path[1:])
		}
	}
	return 0
}

// pages are the pages of docs/ about keys of settings files; other keys are in loop-options.md.
var pages = map[string]string{"permissions": "permissions", modeKey: "permissions", "hooks": "hooks", "guardrails": "guardrails", "tools": "sandbox",
	"a2a_agents": "a2a", "delegate_charges": "agentprotocol", "policy": "policy", "context": "context"}

// PageOf returns the page of docs/ about the key of a settings file that an error is about first.
func PageOf(err error) string {
	page := "loop-options"
	if list := SplitProblems(err); len(list) > 0 {
		text := strings.TrimPrefix(list[0].Text(), strings.TrimPrefix(ErrField.Error(), "agentfile: ")+": ")
		key, _, _ := strings.Cut(strings.TrimPrefix(text, `unknown key "`), " ")
		key, _, _ = strings.Cut(strings.TrimRight(key, `:";`), ".")
		page = cmp.Or(pages[key], page)
	}
	return "docs/" + page + ".md"
}
