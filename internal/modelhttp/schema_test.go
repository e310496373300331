package modelhttp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// TestTheRootOfASchemaIsOneThatEveryAPITakes: one tool of an MCP server whose
// schema has no properties (OpenAI) or a choice at its root (Anthropic) has every
// request refused that lists it.
func TestTheRootOfASchemaIsOneThatEveryAPITakes(t *testing.T) {
	for _, c := range rootCases() {
		if c.want == "same" {
			c.want = c.schema
		}
		got, err := modelhttp.ToolSchema(model.ToolSpec{Name: "t", Schema: c.schema})
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s %v\nwant %s", c.schema, got, err, c.want)
		}
	}
	for _, bad := range []string{`[]`, `true`, `{`, `"object"`} {
		if _, err := modelhttp.ToolSchema(model.ToolSpec{Name: "t", Schema: bad}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// rootCases are schemas and what is sent in their place.
func rootCases() []struct{ schema, want string } {
	return []struct{ schema, want string }{
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
		// The target of a reference is sent instead of its source, with everything that it needs.
		{`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{"description":"` + long + `"},"b":{"$ref":"#/$defs/y"}}},"y":{"items":{"$ref":"#/$defs/z~1z"}},"z/z":{}}}`,
			`{"type":"object","properties":{"a":{"description":"` + long + `"},"b":{"$ref":"#/$defs/y"}},"$defs":{"y":{"items":{"$ref":"#/$defs/z~1z"}},"z/z":{}}}`},
		{`{"anyOf":[{"$ref":"#/definitions/x"},{"properties":{"b":{}}}],"definitions":{"x":{"properties":{"a":{"title":"` + long + `"}}}}}`,
			`{"type":"object","properties":{"a":{"title":"` + long + `"},"b":{}},"definitions":{}}`},
		// A reference of another kind may be to anything, so nothing but the copies can be spared.
		{`{"anyOf":[{"$ref":"#/$defs/x"},{"properties":{"b":{"$ref":"#/$defs/x/properties/a"},"c":{"$ref":"#c"}}}],"$defs":{"x":{"properties":{"a":{"title":"` + long + `"}}}}}`,
			`{"type":"object","properties":{"b":{"$ref":"#/$defs/x/properties/a"},"c":{"$ref":"#c"}},"$defs":{"x":{"properties":{"a":{"title":"` + long + `"}}}}}`},
	}
}

var long = strings.Repeat("long ", 40)

// TestWireSchemaFitsItsReservation: for a call as much is held as
// the schema has bytes, and references can make few bytes many.
func TestWireSchemaFitsItsReservation(t *testing.T) {
	const frame = `{"type":"object","properties":{}}` // the most that is put around a schema as written
	if err := tokens.Load(); err != nil {
		t.Fatal(err)
	}
	if n := tokens.Count(frame); n > budget.EnvelopeTokens {
		t.Errorf("the frame has %d tokens, %d are held for it", n, budget.EnvelopeTokens)
	}
	many := `{"anyOf":[` + strings.Repeat(`{"$ref":"#"},`, 99) + `{"$ref":"#/anyOf"}],"oneOf":[` + strings.Repeat(`{"$ref":"#/$defs/x"},`, 99) + `{}],"$defs":{"x":{"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/x"},`, 99) + `{}]}}}`
	all := append(rootCases(), []struct{ schema, want string }{{schema: many}, {schema: refChain(30)}, {schema: `{"properties":{"` + strings.Repeat("<", 99) + `":{}}}`}}...)
	for _, c := range all {
		got, err := modelhttp.ToolSchema(model.ToolSpec{Name: "t", Schema: c.schema})
		if held := budget.Tools([]model.ToolSpec{{Schema: c.schema}}) - budget.EnvelopeTokens + int64(len(frame)); err != nil || int64(len(got)) > held {
			t.Errorf("%.300s: %d bytes, %d are held, %v", c.schema, len(got), held, err)
		}
		var root struct {
			Type       string
			Properties map[string]json.RawMessage
		}
		if err := json.Unmarshal(got, &root); err != nil || root.Type != "object" || root.Properties == nil {
			t.Errorf("%.300s: no API takes %.300s (%v)", c.schema, got, err)
		}
	}
}

// refChain is a schema of 16 KiB whose choices are each a level of one deep
// property, with a long description at its end.
func refChain(depth int) string {
	end, at := `{"description":"`+strings.Repeat("d", 8<<10)+`"}`, "#/$defs/a"
	var refs []string
	for i := range depth {
		end = fmt.Sprintf(`{"properties":{"k%d":%s}}`, depth-i, end)
		refs = append(refs, `{"$ref":"`+at+`"}`)
		at += fmt.Sprintf("/properties/k%d", i+1)
	}
	return `{"type":"object","anyOf":[` + strings.Join(refs, ",") + `],"$defs":{"a":` + end + `}}`
}
