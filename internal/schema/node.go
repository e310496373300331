package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaNode is one schema of a document. The library checks the keywords that depend on the
// value alone; the node applies the schemas within itself, so that each is applied to each
// value once, in document order.
type schemaNode struct {
	place string // as errors name it
	cost  int    // steps of checking its keywords

	types          []string
	enumIdentities map[string]bool      // identities of enum; nil: any value
	constIdentity  *string              // identity of const
	kinds          map[string]bool      // of the values of enum or const
	local          *jsonschema.Schema   // every keyword that depends on the value alone
	rest           *jsonschema.Resolved // of numbers and strings
	sizes          *jsonschema.Resolved // of arrays and objects, checked after their contents
	pattern        int                  // instructions
	unique         bool

	inPlaceSchemas
	itemSchemas
	propertySchemas
}

// inPlaceSchemas are the schemas that apply to the same value.
type inPlaceSchemas struct {
	ref                  *schemaNode
	all, any, one        []*schemaNode
	anyText, oneText     string // how errors list the alternatives
	not, cond, then, els *schemaNode
	simple               bool // there are none, and none within
}

// itemSchemas are the schemas of the items of an array.
type itemSchemas struct {
	first            []*schemaNode // one each
	others           *schemaNode
	contains         *schemaNode
	least            int // how many items must fit contains
	most             *int
	unevaluatedItems *schemaNode
}

// propertySchemas are the schemas of the properties of an object. Those that apply no other
// schemas come first: such a schema distinguishes the kinds of a union.
type propertySchemas struct {
	props                 []namedSchema
	patterns              []patternSchema
	extra                 *schemaNode // for properties that neither names
	closed                bool        // extra fits nothing
	names                 *schemaNode
	needs                 []dependentNames
	dependents            []namedSchema
	unevaluatedProperties *schemaNode
}

type namedSchema struct {
	name string
	to   *schemaNode
}

type patternSchema struct {
	re   *regexp.Regexp
	cost int
	to   *schemaNode
}

type dependentNames struct {
	name  string
	names []string
}

// nodeBuilder makes nodes of a schema and of all schemas within it.
type nodeBuilder struct {
	draft7         bool
	places         map[string]*jsonschema.Schema
	nodes          map[*jsonschema.Schema]*schemaNode
	needsEvaluated bool // some schema needs to know what others have seen
	order          []string
}

func buildNodes(root *jsonschema.Schema) (*nodeBuilder, error) {
	d := &nodeBuilder{places: map[string]*jsonschema.Schema{}, nodes: map[*jsonschema.Schema]*schemaNode{},
		draft7: strings.Contains(root.Schema, "draft-07")}
	if err := d.addNodes(root, ""); err != nil {
		return nil, err
	}
	for _, place := range d.order {
		s := d.places[place]
		n := d.nodes[s]
		d.needsEvaluated = d.needsEvaluated || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
		if s.Ref != "" {
			if n.ref = d.nodes[d.places[canonicalRef(s.Ref)]]; n.ref == nil {
				return nil, fmt.Errorf("schema: the reference %.80q at #%s leads to no schema", s.Ref, place)
			}
			if d.draft7 {
				continue // other keywords of a schema with a reference have no effect
			}
		}
		if err := d.fillNode(n, s); err != nil {
			return nil, fmt.Errorf("schema: at #%s: %w", place, err)
		}
	}
	for _, n := range d.nodes {
		n.simple = n.appliesNone()
	}
	for _, n := range d.nodes {
		slices.SortStableFunc(n.props, func(a, b namedSchema) int { return boolToInt(b.to.simple) - boolToInt(a.to.simple) })
	}
	return d, nil
}

func boolToInt(first bool) int {
	if first {
		return 1
	}
	return 0
}

// addNodes makes an empty node for every schema, in a fixed order.
func (d *nodeBuilder) addNodes(s *jsonschema.Schema, place string) error {
	if s == nil {
		return fmt.Errorf("schema: #%s is null, not a schema", place)
	}
	d.places[place] = s
	d.order = append(d.order, place)
	d.nodes[s] = &schemaNode{place: s.ID, cost: 1}
	if s.ID == "" {
		d.nodes[s].place = place
	}
	if s.ID == "" && place == "" {
		d.nodes[s].place = "root"
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch v.Type().Field(i).Name {
		case "Items", "ItemsArray":
			key = "items"
		case "DependencySchemas":
			key = "dependencies"
		}
		var err error
		switch in := v.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			if in != nil {
				err = d.addNodes(in, place+"/"+key)
			}
		case []*jsonschema.Schema:
			for j := 0; j < len(in) && err == nil; j++ {
				err = d.addNodes(in[j], place+"/"+key+"/"+strconv.Itoa(j))
			}
		case map[string]*jsonschema.Schema:
			for _, name := range slices.Sorted(maps.Keys(in)) {
				if err == nil {
					err = d.addNodes(in[name], place+"/"+key+"/"+pointerEscaper.Replace(name))
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// canonicalRef returns the position that a reference of the document names.
func canonicalRef(ref string) string {
	parts := strings.Split(strings.TrimPrefix(ref, "#"), "/")
	for i, part := range parts {
		parts[i] = pointerEscaper.Replace(pointerUnescaper.Replace(part))
	}
	return strings.Join(parts, "/")
}

// fillNode sets the fields of a node from its schema.
func (d *nodeBuilder) fillNode(n *schemaNode, s *jsonschema.Schema) error {
	one := func(s *jsonschema.Schema) *schemaNode { return d.nodes[s] }
	many := func(list []*jsonschema.Schema) (to []*schemaNode) {
		if list != nil {
			to = make([]*schemaNode, len(list)) // an empty list of alternatives fits nothing
		}
		for i, s := range list {
			to[i] = d.nodes[s]
		}
		return to
	}
	n.all, n.any, n.one = many(s.AllOf), many(s.AnyOf), many(s.OneOf)
	n.anyText, n.oneText = fmt.Sprint(s.AnyOf), fmt.Sprint(s.OneOf)
	n.not, n.cond, n.then, n.els = one(s.Not), one(s.If), one(s.Then), one(s.Else)

	n.contains, n.least, n.most, n.unevaluatedItems = one(s.Contains), 1, s.MaxContains, one(s.UnevaluatedItems)
	if s.MinContains != nil {
		n.least = *s.MinContains
	}
	n.first, n.others = many(s.PrefixItems), one(s.Items)
	if d.draft7 {
		if n.first = many(s.ItemsArray); s.ItemsArray != nil {
			n.others = one(s.AdditionalItems)
		}
	}
	n.props = d.sortedSchemas(s.Properties)
	n.extra, n.names, n.unevaluatedProperties = one(s.AdditionalProperties), one(s.PropertyNames), one(s.UnevaluatedProperties)
	n.closed = n.extra != nil && s.AdditionalProperties.Not != nil && reflect.ValueOf(*s.AdditionalProperties.Not).IsZero()
	needs := s.DependentRequired
	n.dependents = d.sortedSchemas(s.DependentSchemas)
	if d.draft7 {
		needs, n.dependents = s.DependencyStrings, d.sortedSchemas(s.DependencySchemas)
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		n.needs = append(n.needs, dependentNames{name, needs[name]})
		n.cost += len(needs[name]) / stepEntries
	}
	for _, p := range d.sortedSchemas(s.PatternProperties) {
		re, err := regexp.Compile(p.name)
		if err != nil {
			return fmt.Errorf("patternProperties[%q]: %w", p.name, err)
		}
		n.patterns = append(n.patterns, patternSchema{re, programSize(p.name), p.to})
	}
	n.cost += (len(n.props) + len(s.Required) + len(n.needs) + len(n.dependents)) / stepEntries
	return n.fillLocal(s)
}

func (d *nodeBuilder) sortedSchemas(m map[string]*jsonschema.Schema) (list []namedSchema) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, namedSchema{name, d.nodes[m[name]]})
	}
	return list
}

func (n *schemaNode) appliesNone() bool {
	return n.ref == nil && len(n.all)+len(n.any)+len(n.one) == 0 && n.not == nil && n.cond == nil &&
		len(n.first) == 0 && n.others == nil && n.contains == nil && n.unevaluatedItems == nil &&
		len(n.props)+len(n.patterns)+len(n.needs)+len(n.dependents) == 0 && n.extra == nil && n.names == nil && n.unevaluatedProperties == nil
}

// fillLocal sets the keywords that depend on the value alone.
func (n *schemaNode) fillLocal(s *jsonschema.Schema) error {
	n.types = s.Types
	if s.Type != "" {
		n.types = []string{s.Type}
	}
	n.kinds = map[string]bool{}
	if s.Enum != nil {
		n.enumIdentities = map[string]bool{}
		for _, v := range s.Enum {
			w := measureValue(v)
			n.enumIdentities[w.identity()], n.kinds[w.kind] = true, true
		}
	}
	if s.Const != nil {
		w := measureValue(*s.Const)
		id := w.identity()
		n.constIdentity, n.kinds[w.kind] = &id, true
	}
	n.unique = s.UniqueItems
	if s.Pattern != "" {
		n.pattern = programSize(s.Pattern)
	}
	local := jsonschema.Schema{
		MultipleOf: s.MultipleOf, Minimum: s.Minimum, Maximum: s.Maximum, ExclusiveMinimum: s.ExclusiveMinimum, ExclusiveMaximum: s.ExclusiveMaximum,
		MinLength: s.MinLength, MaxLength: s.MaxLength, Pattern: s.Pattern,
	}
	sizes := jsonschema.Schema{MinItems: s.MinItems, MaxItems: s.MaxItems, MinProperties: s.MinProperties, MaxProperties: s.MaxProperties, Required: s.Required}
	var err, sizesErr error
	n.rest, err = resolveKeywords(local)
	n.sizes, sizesErr = resolveKeywords(sizes)
	local.Type, local.Types, local.Enum, local.Const = s.Type, s.Types, s.Enum, s.Const
	local.MinItems, local.MaxItems, local.MinProperties, local.MaxProperties, local.Required = s.MinItems, s.MaxItems, s.MinProperties, s.MaxProperties, s.Required
	n.local = &local
	return errors.Join(err, sizesErr)
}

// resolveKeywords compiles a schema of some keywords; nil if it has none.
func resolveKeywords(s jsonschema.Schema) (*jsonschema.Resolved, error) {
	if reflect.ValueOf(s).IsZero() {
		return nil, nil
	}
	return s.Resolve(nil)
}

// parseSchema parses the text of a schema, and lets the library check all of it.
func parseSchema(text string) (*nodeBuilder, *jsonschema.Schema, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		if strings.Contains(strings.ToLower(text), "dependencies") { // the library reads those in no fixed order
			return nil, nil, errors.New("schema: a keyword has an invalid value, for instance in dependencies")
		}
		return nil, nil, err
	}
	d, err := buildNodes(&s)
	if err != nil {
		return nil, nil, err
	}
	if _, err := s.Resolve(nil); err != nil {
		return nil, nil, err
	}
	// A schema of a version that the library does not know fails only when it is used.
	version, err := (&jsonschema.Schema{Schema: s.Schema}).Resolve(nil)
	if err == nil {
		err = version.Validate(nil)
	}
	return d, &s, err
}

// programSize returns the size of the program of a regular expression.
func programSize(text string) int {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return len(text) // the library reports the error
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return len(text)
	}
	return len(prog.Inst)
}
