package modelhttp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// maxSchemaDepth bounds the nesting of a schema: OpenAI's limit.
const maxSchemaDepth = 10

// The keywords of a schema that providers with structured output understand, by treatment:
// kept, or left out because the keyword only narrows the accepted values (the answer is
// checked against the whole schema anyway). Any other keyword is not understood.
var (
	schemaKept    = []string{"type", "description", "enum", "const", "properties", "required", "items", "anyOf", "additionalProperties"}
	schemaDropped = []string{"$schema", "$id", "$comment", "title", "default", "examples", "format", "pattern", "minLength", "maxLength",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems",
		"minProperties", "maxProperties", "deprecated", "readOnly", "writeOnly"}
)

// ConstrainSchema renders a schema for structured output: it contains nothing that providers
// refuse, and no object allows properties other than those named. ok is false if that is
// not possible without changing which values fit. With all, every property must be
// required, too: OpenAI's rule.
func ConstrainSchema(schema string, all bool) (constrained json.RawMessage, ok bool) {
	c := schemaConstrainer{all: all}
	out := c.renderNode([]byte(schema), 0)
	var root struct {
		Type  string
		AnyOf json.RawMessage
	}
	if c.unsupported || json.Unmarshal(out, &root) != nil || root.Type != "object" || all && root.AnyOf != nil {
		return nil, false
	}
	return out, true
}

// schemaConstrainer walks a schema; its order is kept, since models write in it.
type schemaConstrainer struct{ all, unsupported bool }

// objectMember is a key of an object with its value.
type objectMember struct {
	key   string
	value json.RawMessage
}

// objectMembers returns the members of an object in order; nil if the JSON is no object.
func objectMembers(raw []byte) []objectMember {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	out := []objectMember{}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return nil
		}
		name, _ := key.(string)
		out = append(out, objectMember{name, value})
	}
	return out
}

// encodeObject writes members as an object.
func encodeObject(list []objectMember) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // or it would be longer than it was
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		if enc.Encode(m.key) != nil {
			continue // a string always encodes
		}
		b.Truncate(b.Len() - 1) // the end of its line
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (c *schemaConstrainer) markUnsupported() json.RawMessage {
	c.unsupported = true
	return nil
}

// renderNode renders one schema.
func (c *schemaConstrainer) renderNode(raw []byte, depth int) json.RawMessage {
	list := objectMembers(raw)
	if len(list) == 0 || depth > maxSchemaDepth || c.unsupported {
		return c.markUnsupported() // true, false and {} accept any value
	}
	var out, properties []objectMember
	var required []string
	kind, closed, listed, said := "", false, false, false
	for _, m := range list {
		switch {
		case slices.Contains(schemaDropped, m.key):
			continue
		case !slices.Contains(schemaKept, m.key):
			return c.markUnsupported()
		}
		switch m.key {
		case "type":
			kind = typeNames(m.value)
		case "properties":
			properties = objectMembers(m.value)
			for i := range properties {
				properties[i].value = c.renderNode(properties[i].value, depth+1)
			}
			m.value = encodeObject(properties)
		case "items":
			m.value, listed = c.renderNode(m.value, depth+1), true
		case "anyOf":
			m.value, said = c.renderList(m.value, depth+1), true
		case "enum", "const":
			said = true
		case "required":
			if json.Unmarshal(m.value, &required) != nil {
				return c.markUnsupported()
			}
		case "additionalProperties":
			if strings.TrimSpace(string(m.value)) != "false" {
				return c.markUnsupported()
			}
			closed = true
		}
		out = append(out, m)
	}
	// Providers with structured output refuse a schema without a type, and a list without an
	// item type.
	if kind == "" && !said || strings.Contains(kind, "array") && !listed {
		return c.markUnsupported()
	}
	if strings.Contains(kind, "object") {
		if properties == nil || c.all && !requiresAll(properties, required) {
			return c.markUnsupported()
		}
		if !closed {
			out = append(out, objectMember{"additionalProperties", json.RawMessage("false")})
		}
	}
	return encodeObject(out)
}

func (c *schemaConstrainer) renderList(raw []byte, depth int) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return c.markUnsupported()
	}
	for i := range list {
		if list[i] = c.renderNode(list[i], depth); c.unsupported {
			return nil
		}
	}
	return slices.Concat([]byte("["), bytes.Join(bytesOf(list), []byte(",")), []byte("]"))
}

func bytesOf(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// typeNames are the names of a type or of several.
func typeNames(raw json.RawMessage) string {
	var one string
	var many []string
	if json.Unmarshal(raw, &one) != nil && json.Unmarshal(raw, &many) != nil {
		return ""
	}
	return strings.Join(append(many, one), " ")
}

func requiresAll(properties []objectMember, required []string) bool {
	return len(required) == len(properties) && !slices.ContainsFunc(properties, func(m objectMember) bool { return !slices.Contains(required, m.key) })
}
