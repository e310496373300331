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

// Constrained renders a schema for structured output: it contains nothing that providers
// refuse, and no object allows properties other than those named. ok is false if that is
// not possible without changing which values fit. With all, every property must be
// required, too: OpenAI's rule.
func Constrained(schema string, all bool) (constrained json.RawMessage, ok bool) {
	c := constrainer{all: all}
	out := c.node([]byte(schema), 0)
	var root struct {
		Type  string
		AnyOf json.RawMessage
	}
	if c.bad || json.Unmarshal(out, &root) != nil || root.Type != "object" || all && root.AnyOf != nil {
		return nil, false
	}
	return out, true
}

// constrainer walks a schema; its order is kept, since models write in it.
type constrainer struct{ all, bad bool }

// member is a key of an object with its value.
type member struct {
	key   string
	value json.RawMessage
}

// members returns the members of an object in order; nil if the JSON is no object.
func members(raw []byte) []member {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	out := []member{}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return nil
		}
		name, _ := key.(string)
		out = append(out, member{name, value})
	}
	return out
}

// object writes members as an object.
func object(list []member) json.RawMessage {
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

func (c *constrainer) fail() json.RawMessage {
	c.bad = true
	return nil
}

// node renders one schema.
func (c *constrainer) node(raw []byte, depth int) json.RawMessage {
	list := members(raw)
	if len(list) == 0 || depth > maxSchemaDepth || c.bad {
		return c.fail() // true, false and {} accept any value
	}
	var out, properties []member
	var required []string
	kind, closed, listed, said := "", false, false, false
	for _, m := range list {
		switch {
		case slices.Contains(schemaDropped, m.key):
			continue
		case !slices.Contains(schemaKept, m.key):
			return c.fail()
		}
		switch m.key {
		case "type":
			kind = types(m.value)
		case "properties":
			properties = members(m.value)
			for i := range properties {
				properties[i].value = c.node(properties[i].value, depth+1)
			}
			m.value = object(properties)
		case "items":
			m.value, listed = c.node(m.value, depth+1), true
		case "anyOf":
			m.value, said = c.list(m.value, depth+1), true
		case "enum", "const":
			said = true
		case "required":
			if json.Unmarshal(m.value, &required) != nil {
				return c.fail()
			}
		case "additionalProperties":
			if strings.TrimSpace(string(m.value)) != "false" {
				return c.fail()
			}
			closed = true
		}
		out = append(out, m)
	}
	// Providers with structured output refuse a schema without a type, and a list without an
	// item type.
	if kind == "" && !said || strings.Contains(kind, "array") && !listed {
		return c.fail()
	}
	if strings.Contains(kind, "object") {
		if properties == nil || c.all && !requires(properties, required) {
			return c.fail()
		}
		if !closed {
			out = append(out, member{"additionalProperties", json.RawMessage("false")})
		}
	}
	return object(out)
}

func (c *constrainer) list(raw []byte, depth int) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return c.fail()
	}
	for i := range list {
		if list[i] = c.node(list[i], depth); c.bad {
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

// types are the names of a type or of several.
func types(raw json.RawMessage) string {
	var one string
	var many []string
	if json.Unmarshal(raw, &one) != nil && json.Unmarshal(raw, &many) != nil {
		return ""
	}
	return strings.Join(append(many, one), " ")
}

func requires(properties []member, required []string) bool {
	return len(required) == len(properties) && !slices.ContainsFunc(properties, func(m member) bool { return !slices.Contains(required, m.key) })
}
