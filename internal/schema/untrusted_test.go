package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestASchemaThatNeverEndsIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"$ref":"#"}`:             "leads back to itself",
		`{"allOf":[{"$ref":"#"}]}`: "leads back to itself",
		`{"properties":{"a":{"$ref":"#/properties/a"}}}`:                               "leads back to itself",
		`{"$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"if":{"$ref":"#/$defs/a"}}}}`: "leads back to itself",
		`{"dependentSchemas":{"a/b":{"$ref":"#"}}}`:                                    "leads back to itself",
		`{"$anchor":"x","$ref":"#x"}`:                                                  "not to a place of the document",
		`{"$ref":"https://example.com/s"}`:                                             "not to a place of the document",
		`{"$dynamicAnchor":"x","$dynamicRef":"#x"}`:                                    "is not allowed",
		`{"$REF":"#"}`: "leads back to itself", `{"ALLOF":[{"$ref":"#"}]}`: "leads back to itself",
		`{"$ref":"#/%24defs/a","$defs":{"a":{"$ref":"#/%24defs/a"}}}`:     "not to a place of the document",
		`{"properties":{"a":{"$id":"https://example.com/s","$ref":"#"}}}`: "$id at #/properties/a",
		`{"$ref":""}`: "not to a place of the document",
		`[]`:          "not a JSON object", `{`: "not a JSON object", `null`: "not a JSON object",
		`{"description":"` + strings.Repeat("x", BytesMax) + `"}`: "bytes, at most",
	} {
		if err := Check(text); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
	for _, text := range []string{
		`{}`, `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"required":["x"]}}}`,
		`{"properties":{"next":{"$ref":"#"}},"items":{"$ref":"#"}}`, // goes into the value
		`{"const":{"$ref":"#"}}`, `{"properties":{"$ref":{"type":"string"}}}`, `{"$ref":"#/nowhere"}`,
		`{"$id":"https://example.com/s","properties":{"$id":{"type":"string"},"Not":{"type":"string"}}}`,
	} {
		if err := Check(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Each level applies the next one twice.
func TestASchemaOfManyWaysIsRefused(t *testing.T) {
	defs := []string{`"a0":{}`}
	for i := range 20 {
		defs = append(defs, fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i+1, i, i))
	}
	if err := Check(`{"$defs":{` + strings.Join(defs, ",") + `}}`); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
}

// FuzzCheck: whatever the text is, the check itself comes to an end.
func FuzzCheck(f *testing.F) {
	f.Add(`{"$ref":"#/a/0","a":[{"$ref":"#"}]}`)
	f.Fuzz(func(_ *testing.T, text string) { _ = Check(text) })
}
