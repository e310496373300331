package agentfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/amount"
)

// decoder walks the front matter and collects its problems.
type decoder struct {
	path     string
	def      *Definition
	strict   bool           // an unknown key is an error
	shared   bool           // the file is about all agents, not one
	lines    map[string]int // of top-level keys
	notes    []Note
	problems []error
	probe    func(within string, known map[string]fieldReader) // of NumericKeys; nil: readFields reads
}

// The front matter begins after the fence, so its first line is line 2 of the file.

// hasRoomForNotes reports whether a further note is kept: looking for suggestions that are not shown would cost
// seconds for a file of many unknown names.
func (d *decoder) hasRoomForNotes() bool { return len(d.notes) < problemsMax }

func (d *decoder) addNote(line int, format string, args ...any) {
	if d.hasRoomForNotes() {
		d.notes = append(d.notes, Note{Path: d.path, Line: line, Text: fmt.Sprintf(format, args...)})
	}
}

func (d *decoder) addProblem(line int, format string, args ...any) {
	if len(d.problems) >= problemsMax {
		return
	}
	d.problems = append(d.problems, &Problem{d.path, max(0, line), fmt.Errorf("%w: %s", ErrField, fmt.Sprintf(format, args...))})
}

// parseDocument parses YAML text to its one root node.
func parseDocument(text []byte) (root *yaml.Node, err error) {
	defer func() { // the parser might panic on untrusted text
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errYAML, p)
		}
	}()
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	return doc.Content[0], nil
}

var errYAML = errors.New("the YAML parser failed")

// findForbidden finds constructs that a definition does not need and an attacker does: aliases,
// which make small files large, and deep nesting.
func findForbidden(n *yaml.Node, depth int) (line int, what string) {
	if n.Kind == yaml.AliasNode {
		return n.Line, "YAML aliases (*name) are not allowed; write the value again"
	}
	if depth > depthMax {
		return n.Line, fmt.Sprintf("nested more than %d levels deep", depthMax)
	}
	for _, c := range n.Content {
		if line, what := findForbidden(c, depth+1); what != "" {
			return line, what
		}
	}
	return 0, ""
}

// fieldReader reads one value.
type fieldReader func(d *decoder, key string, n *yaml.Node)

// readFields reads a mapping with the readers of its known keys.
func (d *decoder) readFields(n *yaml.Node, within string, known map[string]fieldReader) {
	if n.Kind != yaml.MappingNode {
		d.rejectValue(n, strings.TrimSuffix(within, "."), "a mapping, such as {key: value}")
		return
	}
	if d.probe != nil && len(n.Content) == 0 {
		d.probe(within, known)
		return
	}
	if d.lines == nil {
		d.lines = map[string]int{}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := strings.ToValidUTF8(key.Value, "\uFFFD")
		if key.Kind != yaml.ScalarNode || seen[name] {
			d.addProblem(key.Line+1, "key %.60q is used twice or is not text; keep one", name)
			continue
		}
		seen[name] = true
		if within == "" {
			d.lines[name] = key.Line + 1
		}
		read := known[name]
		if read == nil {
			d.reportUnknownKey(key, within, known)
			continue
		}
		if value.Tag == "!!null" {
			continue // a key without a value has no effect
		}
		read(d, within+name, value)
	}
}

// reportUnknownKey adds a problem or a note about a key that has no reader.
func (d *decoder) reportUnknownKey(key *yaml.Node, within string, known map[string]fieldReader) {
	name := strings.ToValidUTF8(key.Value, "\uFFFD")
	switch isError := d.strict || strings.HasPrefix(within, ownKey+"."); {
	case isError && len(d.problems) < problemsMax:
		d.addProblem(key.Line+1, "unknown key %.60q%s", within+name, didYouMean(name, keysOf(known)))
	case !isError && d.hasRoomForNotes():
		d.addNote(key.Line+1, "unknown key %.60q is ignored%s", within+name, didYouMean(name, keysOf(known)))
	}
}

func keysOf(known map[string]fieldReader) []string {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (d *decoder) rejectValue(n *yaml.Node, key, remedy string) {
	d.addProblem(n.Line+1, "%s is %s; write %s", key, kindOf(n), remedy)
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return "the word " + n.Value
	}
	return fmt.Sprintf("%.60q", n.Value)
}

func (d *decoder) readText(n *yaml.Node, key string) string {
	if n.Kind != yaml.ScalarNode {
		d.rejectValue(n, key, "a text")
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(n.Value, "\uFFFD"))
}

// readList reads a list of texts, or a text with commas.
func (d *decoder) readList(n *yaml.Node, key string) []string {
	items := []string{}
	switch {
	case n.Kind == yaml.ScalarNode:
		return append(items, splitCommas(d.readText(n, key))...)
	case n.Kind != yaml.SequenceNode:
		d.rejectValue(n, key, "a list, such as [a, b]")
		return items
	}
	for _, c := range n.Content {
		if s := d.readText(c, key); s != "" {
			items = append(items, s)
		}
	}
	return items
}

// splitCommas splits a text at commas that are not inside parentheses.
func splitCommas(s string) []string {
	var items []string
	depth, from := 0, 0
	add := func(item string) {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth = max(0, depth-1)
		case r == ',' && depth == 0:
			add(s[from:i])
			from = i + 1
		}
	}
	add(s[from:])
	return items
}

func (d *decoder) readNumber(n *yaml.Node, key string, low, high float64, remedy string) float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(v) || v < low || v > high {
		d.rejectValue(n, key, remedy)
		return 0
	}
	return v
}

func (d *decoder) readInteger(n *yaml.Node, key string, remedy string) int64 {
	v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
		d.rejectValue(n, key, remedy)
		return 0
	}
	return v
}

// readTokens reads a number of tokens, such as 12000 or 12k.
func readTokens(d *decoder, n *yaml.Node, key string) int64 {
	v, err := amount.ParseTokens(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
		d.rejectValue(n, key, "a number of tokens, such as 12000 or 12k")
		return 0
	}
	return v
}

// withoutDollar returns an amount such as $2 as its number.
func withoutDollar(n *yaml.Node) *yaml.Node {
	plain := *n
	plain.Value = strings.TrimPrefix(n.Value, "$")
	return &plain
}

func (d *decoder) readDuration(n *yaml.Node, key string) time.Duration {
	v, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v <= 0 {
		d.rejectValue(n, key, "a duration, such as 90s or 3m")
		return 0
	}
	return v
}

func (d *decoder) readBool(n *yaml.Node, key string) bool {
	v, err := strconv.ParseBool(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.rejectValue(n, key, "true or false")
		return false
	}
	return v
}

// readAny decodes a value of any form; it is bounded because there are no aliases.
func (d *decoder) readAny(n *yaml.Node, key string) any {
	var v any
	if err := n.Decode(&v); err != nil {
		d.rejectValue(n, key, "valid YAML without special tags")
		return nil
	}
	return v
}

// readJSON returns a mapping as JSON text.
func (d *decoder) readJSON(n *yaml.Node, key string) string {
	if n.Kind != yaml.MappingNode {
		d.rejectValue(n, key, "a mapping, such as {key: value}")
		return ""
	}
	text, err := json.Marshal(d.readAny(n, key))
	if err != nil {
		d.rejectValue(n, key, "a mapping whose keys are texts")
		return ""
	}
	return string(text)
}
