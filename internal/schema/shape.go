package schema

import (
	"encoding/json"
	"maps"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// node is what of a schema decides how much work it is to check a value with it:
// which schemas it applies to the value, and which to the values within.
type node struct {
	place   int // bytes of its place, which errors name
	entries int // of its lists and maps
	types   []string
	pattern int  // instructions of its pattern
	enum    int  // bytes of enum and const
	prints  bool // an error names the value
	unique  bool

	ref, any, same []*node // applied to the same value: first, with all errors kept, others

	props    map[string]*node
	patterns []pattern
	extra    []*node // applied to properties that props does not name
	names    []*node // to the names of properties
	listed   []*node // to the first items, one each
	each     []*node // to every item
}

type pattern struct {
	cost int // instructions
	to   *node
}

// shaper makes nodes of the JSON of a schema. model.CheckSchema has seen it: all
// references are places of the document, and none leads back to itself.
type shaper struct {
	root any
	made map[string]*node
}

func shape(text string) (*node, error) {
	s := shaper{made: map[string]*node{}}
	if err := json.Unmarshal([]byte(text), &s.root); err != nil {
		return nil, err
	}
	return s.at(""), nil
}

// at is the node of a place, which may stand in itself.
func (s *shaper) at(place string) *node {
	if n, ok := s.made[place]; ok {
		return n
	}
	n := &node{place: len(place)}
	s.made[place] = n
	m, _ := s.find(place).(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		s.keyword(n, strings.ToLower(key), place+"/"+escape.Replace(key), m[key])
	}
	return n
}

// keyword adds what one keyword brings. The library reads keywords in either case,
// and some mean something in one draft only: all of them count.
func (s *shaper) keyword(n *node, key, place string, v any) {
	list, object := s.below(place, v)
	n.entries += len(list) + len(object)
	switch key {
	case "$ref":
		if to, ok := v.(string); ok {
			n.ref = append(n.ref, s.at(strings.TrimPrefix(to, "#")))
		}
	case "type":
		n.types = append(n.types, texts(v)...)
	case "enum", "const":
		n.enum += weigh(v).size
		n.prints = true
	case "pattern":
		n.pattern = instructions(v)
	case "uniqueitems":
		n.unique = true
	case "allof", "oneof":
		n.same = append(n.same, list...)
	case "anyof":
		n.any = append(n.any, list...)
	case "not", "if", "then", "else":
		n.same = append(n.same, s.at(place))
	case "dependentschemas", "dependencies":
		n.same = slices.AppendSeq(n.same, maps.Values(object))
	case "properties":
		if n.props == nil {
			n.props = map[string]*node{}
		}
		maps.Copy(n.props, object)
	case "patternproperties":
		for name, to := range object {
			n.patterns = append(n.patterns, pattern{instructions(name), to})
		}
	case "additionalproperties", "unevaluatedproperties":
		n.extra = append(n.extra, s.at(place))
	case "propertynames":
		n.names = append(n.names, s.at(place))
	case "prefixitems":
		n.listed = append(n.listed, list...)
	case "items":
		n.listed = append(n.listed, list...)
		if list == nil {
			n.each = append(n.each, s.at(place))
		}
	case "additionalitems", "contains", "unevaluateditems":
		n.each = append(n.each, s.at(place))
		n.prints = true
	}
}

// below are the nodes of a list, or of an object, of schemas.
func (s *shaper) below(place string, v any) (list []*node, object map[string]*node) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			list = append(list, s.at(place+"/"+strconv.Itoa(i)))
		}
	case map[string]any:
		object = map[string]*node{}
		for name := range v {
			object[name] = s.at(place + "/" + escape.Replace(name))
		}
	}
	return list, object
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// find is what stands at a place.
func (s *shaper) find(place string) any {
	v := s.root
	if place == "" {
		return v
	}
	for key := range strings.SplitSeq(place[1:], "/") {
		switch in := v.(type) {
		case map[string]any:
			v = in[unescape.Replace(key)]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			if text, ok := one.(string); ok {
				list = append(list, text)
			}
		}
	}
	return list
}

// instructions is the size of the program of a regular expression.
func instructions(v any) int {
	text, _ := v.(string)
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return len(text) // the library says what is wrong
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return len(text)
	}
	return len(prog.Inst)
}
