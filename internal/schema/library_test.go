package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// randomMaker makes schemas and values of few names, so that they often meet.
type randomMaker struct{ *rand.Rand }

func (m randomMaker) pickOne(of ...string) string { return of[m.IntN(len(of))] }

func (m randomMaker) makeValue(deep int) string {
	if deep == 0 || m.IntN(3) == 0 {
		return m.pickOne(`1`, `1.5`, `2`, `"a"`, `"ab"`, `true`, `null`, `[]`, `{}`)
	}
	var parts []string
	if m.IntN(2) == 0 {
		for range m.IntN(4) {
			parts = append(parts, m.makeValue(deep-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for _, name := range []string{"a", "b", "c"} {
		if m.IntN(2) == 0 {
			parts = append(parts, fmt.Sprintf(`%q:%s`, name, m.makeValue(deep-1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (m randomMaker) makeSchema(deep int) string {
	if deep == 0 || m.IntN(6) == 0 {
		return m.pickOne(`true`, `false`, `{"type":"string"}`, `{"type":["integer","array"]}`, `{"type":"object"}`, `{"const":1}`, `{"const":null}`, `{"enum":[1,"a",{},[]]}`,
			`{"minimum":1.2}`, `{"maxLength":1}`, `{"pattern":"^a$"}`, `{"required":["a"]}`, `{"minItems":2}`, `{"uniqueItems":true}`, `{"maxProperties":1}`, `{"type":"number"}`)
	}
	in := func() string { return m.makeSchema(deep - 1) }
	parts := map[string]bool{}
	for range 1 + m.IntN(3) {
		key := m.pickOne("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "items", "prefixItems", "contains", "unevaluatedItems", "unevaluatedProperties",
			"properties", "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas", "dependentRequired", "$ref", "required", "minContains")
		if parts[key] {
			continue
		}
		parts[key] = true
	}
	var texts []string
	for _, key := range sortedKeys(parts) {
		var v string
		switch key {
		case "allOf", "anyOf", "oneOf", "prefixItems":
			v = "[" + in() + "," + in() + "]"
		case "properties", "patternProperties", "dependentSchemas":
			v = fmt.Sprintf(`{"a":%s,"b":%s}`, in(), in())
		case "dependentRequired":
			v = `{"a":["b"],"b":["c"]}`
		case "required":
			v = `["b"]`
		case "minContains":
			v = m.pickOne("0", "1", "2")
		case "$ref":
			v = m.pickOne(`"#/$defs/x"`, `"#/$defs/y~1z"`)
		default:
			v = in()
		}
		texts = append(texts, fmt.Sprintf("%q:%s", key, v))
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func sortedKeys(m map[string]bool) (keys []string) {
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "items", "prefixItems", "contains", "unevaluatedItems", "unevaluatedProperties",
		"properties", "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas", "dependentRequired", "$ref", "required", "minContains"} {
		if m[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// The verdict about a value is that of the library that compiles the schemas.
func TestValidationAgreesWithTheLibrary(t *testing.T) {
	m := randomMaker{rand.New(rand.NewPCG(1, 2))}
	fit, unfit := 0, 0
	for range 800 {
		leaf := strings.ReplaceAll(m.makeSchema(1), "$ref", "$comment")
		text := fmt.Sprintf(`{"$defs":{"x":%s,"y/z":{"properties":{"a":{"$ref":"#/$defs/x"}},"items":{"$ref":"#/$defs/x"}}},"allOf":[%s]}`, leaf, m.makeSchema(3))
		s, err := compileText(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var plain jsonschema.Schema
		if err := json.Unmarshal([]byte(text), &plain); err != nil {
			t.Fatal(err)
		}
		r, err := plain.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			raw := m.makeValue(3)
			v := decodeJSON(t, raw)
			want, got := r.Validate(v), s.Validate(v)
			if (want == nil) != (got == nil) {
				t.Fatalf("%s\n%s\nlibrary: %v\nhere: %v", text, raw, want, got)
			}
			if got == nil {
				fit++
			} else if unfit++; got.Error() == "" {
				t.Fatal(text)
			}
		}
	}
	if fit < 1000 || unfit < 1000 {
		t.Errorf("%d fit, %d do not", fit, unfit)
	}
	t.Logf("%d fit, %d do not", fit, unfit)
}
