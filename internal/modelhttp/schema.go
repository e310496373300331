package modelhttp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// ToolSchema returns the schema of a tool as JSON without white space, or an error naming the tool. The JSON is
// the schema as written, unless an API would reject its root, and with the root every
// request that lists the tool: a root without properties (OpenAI), or one with a choice
// (Anthropic). In that case ToolSchema lists the properties of all alternatives and omits what
// they require: arguments are checked against the whole schema anyway.
//
// The result is never longer than the schema as written plus emptyObjectSchema, because budget.Tools
// reserves no more for it.
func ToolSchema(t model.ToolSpec) (json.RawMessage, error) {
	if out, ok := renderedSchemas.lookup(t.Schema); ok {
		return out, nil
	}
	rendered, err := renderToolSchema(t)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, rendered); err != nil {
		return nil, UnsentError("the schema of tool %q is not a JSON object", t.Name)
	}
	out := json.RawMessage(compact.Bytes())
	renderedSchemas.keep(t.Schema, out)
	return out, nil
}

func renderToolSchema(t model.ToolSpec) (json.RawMessage, error) {
	if strings.TrimSpace(t.Schema) == "" {
		return json.RawMessage(emptyObjectSchema), nil
	}
	if !IsObject(t.Schema) {
		return nil, UnsentError("the schema of tool %q is not a JSON object", t.Name)
	}
	root := objectMembers([]byte(t.Schema))
	if isPlainRoot(root) {
		return json.RawMessage(t.Schema), nil
	}
	most := len(t.Schema) + len(emptyObjectSchema)
	copied, ok := flattenRoot(root, true, most)
	if ok && len(encodeObject(copied)) > most {
		copied = dropUnusedDefs(copied)
	}
	if out := encodeObject(copied); ok && len(out) <= most {
		return out, nil
	}
	moved, ok := flattenRoot(root, false, most) // no property is listed twice
	if out := encodeObject(moved); ok && len(out) <= most {
		return out, nil
	}
	return json.RawMessage(emptyObjectSchema), nil
}

// emptyObjectSchema is a root without properties. It fits the tokens that are reserved for a tool beyond
// its bytes.
const emptyObjectSchema = `{"type":"object","properties":{}}`

// flattenRoot returns a root that every API accepts; not ok if its properties have more bytes
// than most. With copies, they include the properties of referenced schemas.
func flattenRoot(root []objectMember, copies bool, most int) (out []objectMember, ok bool) {
	f := propertyGatherer{root: root, copies: copies, room: most}
	f.gather(root, 0)
	if f.room < 0 {
		return nil, false
	}
	out = []objectMember{{"type", json.RawMessage(`"object"`)}, {"properties", encodeObject(f.properties)}}
	for _, m := range root {
		if m.key != "type" && m.key != "properties" && !slices.Contains(refusedRootKeys, m.key) {
			out = append(out, m)
		}
	}
	return out, true
}

// refusedRootKeys may not stand at the root of a schema.
var refusedRootKeys = []string{"anyOf", "oneOf", "allOf", "not", "enum", "$ref"}

// isPlainRoot reports whether every API accepts a root unchanged.
func isPlainRoot(root []objectMember) bool {
	kind, listed := false, false
	for _, m := range root {
		switch {
		case slices.Contains(refusedRootKeys, m.key):
			return false
		case m.key == "type":
			kind = strings.TrimSpace(string(m.value)) == `"object"`
		case m.key == "properties":
			listed = IsObject(string(m.value))
		}
	}
	return kind && listed
}

// propertyGatherer gathers the properties of a root and of the schemas that replace it.
type propertyGatherer struct {
	root, properties []objectMember
	copies           bool // of referenced schemas
	nodes            int  // that were looked at
	room             int  // bytes that the properties may still have
}

// gatherNodesMax bounds them: references can turn few bytes into many.
const gatherNodesMax = 1_000

func (f *propertyGatherer) gather(node []objectMember, depth int) {
	if f.nodes++; depth > maxSchemaDepth || f.nodes > gatherNodesMax || f.room < 0 {
		return
	}
	for _, m := range node {
		switch m.key {
		case "properties":
			for _, p := range objectMembers(m.value) {
				if !slices.ContainsFunc(f.properties, func(q objectMember) bool { return q.key == p.key }) {
					f.properties = append(f.properties, p)
					f.room -= len(p.key) + len(p.value)
				}
			}
		case "anyOf", "oneOf", "allOf":
			var list []json.RawMessage
			if json.Unmarshal(m.value, &list) == nil {
				for _, branch := range list {
					f.gather(objectMembers(branch), depth+1)
				}
			}
		case "$ref":
			if f.copies {
				f.gather(f.resolveRef(m.value), depth+1)
			}
		}
	}
}

// resolveRef returns the target of a reference of the usual form (#/$defs/name); nil for any
// other.
func (f *propertyGatherer) resolveRef(ref json.RawMessage) []objectMember {
	var to string
	if json.Unmarshal(ref, &to) != nil || !strings.HasPrefix(to, "#/") {
		return nil
	}
	node := f.root
	for name := range strings.SplitSeq(to[2:], "/") {
		i := slices.IndexFunc(node, func(m objectMember) bool { return m.key == name })
		if i < 0 {
			return nil
		}
		node = objectMembers(node[i].value)
	}
	return node
}

// definitionKeys hold what references are to.
var definitionKeys = []string{"$defs", "definitions"}

// dropUnusedDefs removes the definitions to which no remaining schema refers.
func dropUnusedDefs(root []objectMember) []objectMember {
	defs, kept := map[string]json.RawMessage{}, map[string]bool{}
	var open []json.RawMessage
	for _, m := range root {
		if !slices.Contains(definitionKeys, m.key) {
			open = append(open, m.value)
			continue
		}
		for _, d := range objectMembers(m.value) {
			defs[m.key+"/"+d.key] = d.value
		}
	}
	for ; len(open) > 0; open = open[1:] {
		var node any
		var names []string
		if json.Unmarshal(open[0], &node) != nil || !collectRefs(node, &names) {
			return root
		}
		for _, name := range names {
			if !kept[name] && defs[name] != nil {
				open = append(open, defs[name])
			}
			kept[name] = true
		}
	}
	out := slices.Clone(root)
	for i, m := range out {
		if slices.Contains(definitionKeys, m.key) && IsObject(string(m.value)) {
			out[i].value = encodeObject(slices.DeleteFunc(objectMembers(m.value), func(d objectMember) bool { return !kept[m.key+"/"+d.key] }))
		}
	}
	return out
}

// collectRefs gathers the definitions that a schema refers to; false if one of
// them may be anything.
func collectRefs(node any, names *[]string) bool {
	switch n := node.(type) {
	case []any:
		for _, v := range n {
			if !collectRefs(v, names) {
				return false
			}
		}
	case map[string]any:
		for key, v := range n {
			to, text := v.(string)
			if key == "$dynamicRef" || key == "$recursiveRef" || key == "$ref" && text {
				group, name, ok := strings.Cut(strings.TrimPrefix(to, "#/"), "/")
				if !ok || key != "$ref" || !strings.HasPrefix(to, "#/") || strings.Contains(to, "%") || !slices.Contains(definitionKeys, group) {
					return false
				}
				name, _, _ = strings.Cut(name, "/")
				*names = append(*names, group+"/"+strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
			}
			if !collectRefs(v, names) {
				return false
			}
		}
	}
	return true
}
