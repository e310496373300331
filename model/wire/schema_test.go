package wire_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/wire"
)

// TestTheRootOfASchemaIsOneThatEveryAPITakes: one tool of an MCP server whose
// schema has no properties (OpenAI) or a choice at its root (Anthropic) has every
// request refused that lists it.
func TestTheRootOfASchemaIsOneThatEveryAPITakes(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"b":{"type":"string"},"a":{"oneOf":[{}]}}}`, "same"},
		{`{"properties":{"a":{"anyOf":[{}]}},"type":"object","required":["a"]}`, "same"},
		{``, `{"type":"object","properties":{}}`},
		{`{"type":"object"}`, `{"type":"object","properties":{}}`},
		{`{"type":"object","additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false}`},
		{`{"description":"d"}`, `{"type":"object","properties":{},"description":"d"}`},
		{`{"type":"object","properties":{"z":{}},"oneOf":[{"required":["z"]},{"properties":{"y":{"type":"string"},"z":{"const":1}}},true],"required":["z"]}`,
			`{"type":"object","properties":{"z":{},"y":{"type":"string"}},"required":["z"]}`},
		{`{"type":"object","allOf":[{"properties":{"a":{}},"required":["a"]},{"anyOf":[{"properties":{"b":{}}}]}],"not":{"required":["q"]},"enum":[{}]}`,
			`{"type":"object","properties":{"a":{},"b":{}}}`},
		{`{"type":"object","anyOf":7,"properties":[]}`, `{"type":"object","properties":{}}`},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{}}}}}`, `{"type":"object","properties":{"a":{}},"$defs":{"x":{"type":"object","properties":{"a":{}}}}}`},
		{`{"type":"object","$ref":"#/$defs/x","$defs":{"x":{"$ref":"#/$defs/x"}}}`, `{"type":"object","properties":{},"$defs":{"x":{"$ref":"#/$defs/x"}}}`},
	} {
		if c.want == "same" {
			c.want = c.schema
		}
		got, err := wire.Schema(model.ToolSpec{Name: "t", Schema: c.schema})
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s %v\nwant %s", c.schema, got, err, c.want)
		}
	}
	many := `{"anyOf":[` + strings.Repeat(`{"$ref":"#"},`, 99) + `{"$ref":"#/anyOf"}],"oneOf":[` + strings.Repeat(`{"$ref":"#/$defs/x"},`, 99) + `{}],"$defs":{"x":{"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/x"},`, 99) + `{}]}}}`
	if _, err := wire.Schema(model.ToolSpec{Name: "t", Schema: many}); err != nil { // and it comes back
		t.Error(err)
	}
	for _, bad := range []string{`[]`, `true`, `{`, `"object"`} {
		if _, err := wire.Schema(model.ToolSpec{Name: "t", Schema: bad}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
