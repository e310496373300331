package agentfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder reads the fields of a file into a definition. Its readers know the keys; values are read by valueReader.
type decoder struct {
	valueReader
	def    *Definition
	strict bool                                              // an unknown key is an error
	shared bool                                              // the file is about all agents, not one
	lines  map[string]int                                    // of top-level keys
	probe  func(within string, known map[string]fieldReader) // of NumericKeys; nil: readFields reads
}

// newDecoder returns a decoder of the file of a path, which reads into a definition.
func newDecoder(path string, def *Definition) *decoder {
	return &decoder{valueReader: valueReader{fileReport{path: path}}, def: def}
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

// withoutDollar returns an amount such as $2 as its number.
func withoutDollar(n *yaml.Node) *yaml.Node {
	plain := *n
	plain.Value = strings.TrimPrefix(n.Value, "$")
	return &plain
}
