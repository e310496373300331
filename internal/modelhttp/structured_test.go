package modelhttp_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/schema"
)

// TestConstrainedSchemas: what providers refuse is left out if it only narrows,
// objects are closed, the order stays; where that would change the meaning there
// is none.
//
//behaviour:shows A27
func TestConstrainedSchemas(t *testing.T) {
	for _, c := range []struct{ schema, loose, all string }{
		{`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer","minimum":1}},"required":["z","a"]}`,
			`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z","a"],"additionalProperties":false}`, "same"},
		{`{"$schema":"x","title":"T","type":"object","properties":{"a":{"description":"d","enum":["x","y"]}},"additionalProperties": false}`,
			`{"type":"object","properties":{"a":{"description":"d","enum":["x","y"]}},"additionalProperties":false}`, ""},
		{`{"type":"object","properties":{"l":{"type":"array","minItems":1,"items":{"type":["object","null"],"properties":{},"required":[]}}},"required":["l"]}`,
			`{"type":"object","properties":{"l":{"type":"array","items":{"type":["object","null"],"properties":{},"required":[],"additionalProperties":false}}},"required":["l"],"additionalProperties":false}`, "same"},
		{`{"type":"object","properties":{"u":{"anyOf":[{"type":"string","pattern":"^a"},{"const":null}]}},"required":["u"]}`,
			`{"type":"object","properties":{"u":{"anyOf":[{"type":"string"},{"const":null}]}},"required":["u"],"additionalProperties":false}`, "same"},
		{`{"type":"object"}`, "", ""}, {`{"type":"string"}`, "", ""}, {`true`, "", ""}, {`{}`, "", ""}, {``, "", ""}, {`[]`, "", ""}, {`{"type":`, "", ""},
		{`{"type":"object","properties":{"a":true}}`, "", ""},
		{`{"type":"object","properties":{},"additionalProperties":true}`, "", ""},
		{`{"type":"object","properties":{},"oneOf":[]}`, "", ""},
		{`{"type":"object","properties":{"a":{"$ref":"#"}}}`, "", ""},
		{`{"type":"object","properties":{"a":{"anyOf":[]}}}`, "", ""},
		{`{"type":"object","properties":{"a":{"type":"array","items":false}}}`, "", ""},
		{`{"type":"object","properties":{},"required":"a"}`, "", ""},
		{`{"type":"object","properties":{"value":{"description":"anything"}},"required":["value"]}`, "", ""},
		{`{"type":"object","properties":{"list":{"type":"array"}},"required":["list"]}`, "", ""},
		{`{"type":"object","properties":{"a":{"properties":{"x":{"type":"string"}}}},"required":["a"]}`, "", ""},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`, ""},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"anyOf":[{"type":"string"}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"anyOf":[{"type":"string"}],"additionalProperties":false}`, ""},
	} {
		if c.all == "same" {
			c.all = c.loose
		}
		for all, want := range map[bool]string{false: c.loose, true: c.all} {
			got, ok := modelhttp.ConstrainSchema(c.schema, all)
			if string(got) != want || ok != (want != "") {
				t.Errorf("%s, all %v:\n got %s %v\nwant %s", c.schema, all, got, ok, want)
			}
		}
	}
}

// FuzzConstrained: any text gives a schema that compiles, or none.
func FuzzConstrained(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"anyOf":[{"type":"array","items":{"type":"string"}}]}},"required":["a"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := modelhttp.ConstrainSchema(text, false)
		if _, err := schema.Compile(text); err != nil || !ok {
			return
		}
		if _, err := schema.Compile(string(got)); err != nil {
			t.Errorf("%s became %s: %v", text, got, err)
		}
	})
}
