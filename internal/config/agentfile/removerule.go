package agentfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/safefile"
)

// WrittenRule is a rule in a file of the user.
type WrittenRule struct {
	File string `json:"file"`
	Line int    `json:"line"`
	List string `json:"list"` // allow, ask, deny or allow_tainted
	Rule string `json:"rule"` // in troupe's names of tools

	item *yaml.Node
	in   *yaml.Node // its list
	key  *yaml.Node // of its list
}

// ErrByHand: a file is written in a way that only a person should change.
var ErrByHand = errors.New("agentfile: the rule must be removed by hand")

// ruleLists are the keys below permissions that hold rules.
var ruleLists = []string{"allow", "ask", "deny", "allow_tainted"}

// FindRules returns the rules below permissions of a settings file, or of a file of rules for one directory, in their
// order. A missing file has none.
func FindRules(file string) ([]WrittenRule, error) {
	data, err := safefile.Read(file, FileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("agentfile: %s: %w", file, err)
	}
	return parseWrittenRules(file, data)
}

func parseWrittenRules(file string, data []byte) (list []WrittenRule, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, &Problem{Path: file, Err: fmt.Errorf("%w: %w", ErrField, err)}
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	_, permissions := findKey(doc.Content[0], "permissions")
	for _, name := range ruleLists {
		key, rules := findKey(permissions, name)
		if rules == nil {
			continue
		}
		items := rules.Content
		if rules.Kind == yaml.ScalarNode {
			items = []*yaml.Node{rules}
		}
		for _, item := range items {
			if r, err := ParseRule(item.Value, file, false); err == nil {
				list = append(list, WrittenRule{File: file, Line: item.Line, List: name, Rule: r.Text, item: item, in: rules, key: key})
			}
		}
	}
	return list, nil
}

// findKey returns a key of a mapping and its value; nil: there is none.
func findKey(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// RemoveRule removes a rule that FindRules has found. It changes nothing else of the file, also no comment, and refuses
// with ErrByHand if it cannot tell where the rule ends.
func RemoveRule(r WrittenRule) error {
	data, err := safefile.Read(r.File, FileBytesMax)
	if err != nil {
		return fmt.Errorf("agentfile: %s: %w", r.File, err)
	}
	before, err := parseWrittenRules(r.File, data)
	if err != nil {
		return err
	}
	same := func(x WrittenRule) bool { return x.Line == r.Line && x.List == r.List && x.Rule == r.Rule }
	i := slices.IndexFunc(before, same)
	if i < 0 {
		return fmt.Errorf("agentfile: %s:%d: the file has changed: the rule %s is not there any more", r.File, r.Line, r.Rule)
	}
	changed, ok := cutRule(string(data), before[i])
	if ok {
		after, err := parseWrittenRules(r.File, []byte(changed))
		ok = err == nil && slices.EqualFunc(slices.Delete(slices.Clone(before), i, i+1), after, func(x, y WrittenRule) bool { return x.List == y.List && x.Rule == y.Rule })
	}
	if !ok {
		return fmt.Errorf("%w: %s:%d: %s", ErrByHand, r.File, r.Line, r.Rule)
	}
	if err := replaceInPlace(r.File, []byte(changed)); err != nil {
		return fmt.Errorf("agentfile: %s: %w", r.File, err)
	}
	return nil
}

// replaceInPlace replaces the file that a path leads to, and keeps its mode.
func replaceInPlace(path string, data []byte) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if err := safefile.Replace(real, data); err != nil {
		return err
	}
	return os.Chmod(real, info.Mode().Perm())
}

// cutRule removes the text of a rule: its line in a list with a line for each rule, or its word in a list in brackets.
// The key of a list without a rule is left with an empty list.
func cutRule(text string, r WrittenRule) (string, bool) {
	lines := strings.SplitAfter(text, "\n")
	at := r.item.Line - 1
	switch {
	case r.in.Kind != yaml.SequenceNode:
		return "", false
	case r.in.Style&yaml.FlowStyle != 0:
		return cutFlowItem(lines, at, r)
	case len(r.in.Content) > 1:
		return strings.Join(slices.Delete(lines, at, at+1), ""), true
	}
	key := r.key.Line - 1
	before, after, ok := strings.Cut(lines[key], r.key.Value+":")
	if !ok || key >= at {
		return "", false
	}
	lines[key] = before + r.key.Value + ": []" + after
	return strings.Join(slices.Delete(lines, at, at+1), ""), true
}

// cutFlowItem removes an item of a list in brackets, with one comma beside it.
func cutFlowItem(lines []string, at int, r WrittenRule) (string, bool) {
	line := []rune(lines[at])
	start := r.item.Column - 1
	end := flowItemEnd(line, start)
	if end < 0 {
		return "", false
	}
	rest := strings.TrimLeft(string(line[end:]), " \t")
	head := string(line[:start])
	switch trimmed := strings.TrimRight(head, " \t"); {
	case strings.HasPrefix(rest, ","):
		rest = strings.TrimLeft(rest[1:], " \t")
	case strings.HasSuffix(trimmed, ","):
		head = strings.TrimSuffix(trimmed, ",")
	}
	lines[at] = head + rest
	return strings.Join(lines, ""), true
}

// flowItemEnd returns where a scalar of a list in brackets ends; -1: not on this line.
func flowItemEnd(line []rune, start int) int {
	if start < 0 || start >= len(line) {
		return -1
	}
	quote := line[start]
	if quote != '"' && quote != '\'' {
		end := slices.IndexFunc(line[start:], func(c rune) bool { return c == ',' || c == ']' })
		if end < 0 {
			return -1
		}
		return start + end
	}
	for i := start + 1; i < len(line); i++ {
		switch {
		case quote == '"' && line[i] == '\\':
			i++
		case line[i] == quote && quote == '\'' && i+1 < len(line) && line[i+1] == quote:
			i++
		case line[i] == quote:
			return i + 1
		}
	}
	return -1
}
