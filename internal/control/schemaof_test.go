package control

import (
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-run/troupe/agent/event"
)

// schemaBase is the base of the schemas' ids.
const schemaBase = "https://github.com/troupe-run/troupe/blob/main/internal/control/schemas/"

// schemaOf makes the schema of a kind, or that of the envelope, from Go types.
func schemaOf(kind string) (*jsonschema.Schema, error) {
	s, err := jsonschema.For[event.Published](nil)
	if err != nil {
		return nil, fmt.Errorf("control: schema of %s: %w", kind, err)
	}
	s.Schema, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", schemaBase+kind+".json", kind
	s.Properties["v"].Const = jsonschema.Ptr[any](float64(1))
	s.Properties["ts"].Format = "date-time"
	s.Properties["kind"].Pattern = `^[a-z]+\.[a-z_]+$`
	// A later version may add fields, and clients of today must ignore them.
	s.AdditionalProperties = nil
	if kind == envelope {
		return s, nil
	}
	s.Properties["kind"] = &jsonschema.Schema{Const: jsonschema.Ptr[any](kind)}
	data, err := jsonschema.ForType(reflect.TypeOf(eventKinds()[kind]), nil)
	if err != nil {
		return nil, fmt.Errorf("control: schema of %s: %w", kind, err)
	}
	s.Properties["data"] = data
	s.Required = append(s.Required, "data")
	return s, nil
}
