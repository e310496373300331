package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// Schema returns the schema of a tool as JSON, or an error naming the tool. It is
// as it was written but for a root that an API would refuse, and with it every
// request that lists the tool: what has no properties (OpenAI), or a choice
// (Anthropic). Then the properties of all that may be chosen are told, and what is
// demanded of them is not: arguments are checked with the whole schema anyway.
func Schema(t model.ToolSpec) (json.RawMessage, error) {
	if strings.TrimSpace(t.Schema) == "" {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	if !IsObject(t.Schema) {
		return nil, unsent("the schema of tool %q is not a JSON object", t.Name)
	}
	root := members([]byte(t.Schema))
	if plain(root) {
		return json.RawMessage(t.Schema), nil
	}
	f := folder{root: root}
	f.add(root, 0)
	out := []member{{"type", json.RawMessage(`"object"`)}, {"properties", object(f.properties)}}
	for _, m := range root {
		if m.key != "type" && m.key != "properties" && !slices.Contains(rootRefused, m.key) {
			out = append(out, m)
		}
	}
	return object(out), nil
}

// rootRefused may not stand at the root of a schema.
var rootRefused = []string{"anyOf", "oneOf", "allOf", "not", "enum", "$ref"}

// plain reports whether every API takes a root as it is.
func plain(root []member) bool {
	kind, listed := false, false
	for _, m := range root {
		switch {
		case slices.Contains(rootRefused, m.key):
			return false
		case m.key == "type":
			kind = strings.TrimSpace(string(m.value)) == `"object"`
		case m.key == "properties":
			listed = IsObject(string(m.value))
		}
	}
	return kind && listed
}

// folder gathers the properties of a root and of what stands in its place.
type folder struct {
	root, properties []member
	nodes            int // that were looked at
}

// foldedMax bounds them: references can make few bytes many.
const foldedMax = 1_000

func (f *folder) add(node []member, depth int) {
	if f.nodes++; depth > maxSchemaDepth || f.nodes > foldedMax {
		return
	}
	for _, m := range node {
		switch m.key {
		case "properties":
			for _, p := range members(m.value) {
				if !slices.ContainsFunc(f.properties, func(q member) bool { return q.key == p.key }) {
					f.properties = append(f.properties, p)
				}
			}
		case "anyOf", "oneOf", "allOf":
			var list []json.RawMessage
			if json.Unmarshal(m.value, &list) == nil {
				for _, branch := range list {
					f.add(members(branch), depth+1)
				}
			}
		case "$ref":
			f.add(f.meant(m.value), depth+1)
		}
	}
}

// meant is what a reference of the usual form (#/$defs/name) is to; nil for any other.
func (f *folder) meant(ref json.RawMessage) []member {
	var to string
	if json.Unmarshal(ref, &to) != nil || !strings.HasPrefix(to, "#/") {
		return nil
	}
	node := f.root
	for name := range strings.SplitSeq(to[2:], "/") {
		i := slices.IndexFunc(node, func(m member) bool { return m.key == name })
		if i < 0 {
			return nil
		}
		node = members(node[i].value)
	}
	return node
}
