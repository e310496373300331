package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

func decodeJSON(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// The text goes to a model, and a replay must give the same one.
func TestSeveralFaultsGiveOneText(t *testing.T) {
	for text, raw := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"}}}`: `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
		`{"additionalProperties":false}`:                                                                                           `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
		`{"additionalProperties":{"type":"string"}}`:                                                                               `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
		`{"propertyNames":{"maxLength":0}}`:                                                                                        `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
		`{"unevaluatedProperties":{"type":"string"}}`:                                                                              `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
		`{"patternProperties":{"a":{"minimum":9},"[a-e]":{"minimum":8}}}`:                                                          `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
		`{"dependentRequired":{"a":["v"],"b":["w"],"c":["x"],"d":["y"],"e":["z"]}}`:                                                `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
		`{"dependentSchemas":{"a":{"required":["v"]},"b":{"required":["w"]}}}`:                                                     `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
		`{"anyOf":[{"properties":{"a":false,"b":false,"c":false,"d":false}}, false]}`:                                              `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["v"],"b":["w"],"c":["x"],"d":["y"],"e":["z"]}}`: `{"a":1,"b":2,"c":3,"d":4,"e":5}`,
	} {
		s, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]bool{}
		for range 200 {
			err := s.Validate(decodeJSON(t, raw))
			if err == nil {
				t.Fatalf("%s: fits", text)
			}
			texts[err.Error()] = true
		}
		if len(texts) != 1 {
			t.Errorf("%s: %d texts: %v", text, len(texts), texts)
		}
	}
}

// A schema with several faults is always refused with the same text.
func TestSeveralFaultsOfASchemaGiveOneText(t *testing.T) {
	for _, text := range []string{
		`{"properties":{"a":null,"b":null,"c":null,"d":null}}`,
		`{"patternProperties":{"(a":{},"(b":{},"(c":{},"(d":{}}}`,
		`{"properties":{"a":{"$ref":"#/w"},"b":{"$ref":"#/x"},"c":{"$ref":"#/y"},"d":{"$ref":"#/z"}}}`,
		`{"properties":{"a":{"pattern":"("},"b":{"pattern":"(b"},"c":{"pattern":"(c"},"d":{"type":"string","pattern":"(d"}}}`,
		`{"dependencies":{"a":7,"b":"x","c":[1],"d":{"type":8}}}`,
		`{"$defs":{"a":{"type":1},"b":{"minLength":"x"},"c":{"required":7},"d":{"properties":[]}}}`,
	} {
		texts := map[string]bool{}
		for range 200 {
			_, err := compileText(text)
			if err == nil {
				t.Fatalf("%s: compiled", text)
			}
			texts[err.Error()] = true
		}
		if len(texts) != 1 {
			t.Errorf("%s: %d texts: %v", text, len(texts), texts)
		}
	}
}

// A text is cut where it would be as large as the ways to a fault are many.
func TestTheTextOfAFaultIsBounded(t *testing.T) {
	s, err := Compile(`{"$defs":{"n":{"anyOf":[{"items":{"$ref":"#/$defs/n"},"minItems":9},{"items":{"$ref":"#/$defs/n"},"minItems":8}]}},"$ref":"#/$defs/n"}`)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Validate(decodeJSON(t, strings.Repeat("[", 500)+`"é"`+strings.Repeat("]", 500)))
	if err == nil || len(err.Error()) > TextBytesMax+len("…") {
		t.Errorf("%v", err)
	}
	s, err = Compile(`{"type":"object"}`)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Validate(strings.Repeat("é", 1<<20))
	if err == nil || len(err.Error()) > TextBytesMax+len("…") || strings.ContainsRune(err.Error(), '\uFFFD') {
		t.Errorf("%.200v", err)
	}
}
