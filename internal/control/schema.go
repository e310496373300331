package control

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-run/troupe/agent/event"
)

// schemaFiles are the JSON Schemas of events, one for each kind, and that of
// the envelope. They are made from the Go types: `go test ./internal/control -rewrite`.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

// envelope is the name of the schema that every event meets.
const envelope = "envelope"

// ErrEvent: a document is not an event that this package publishes.
var ErrEvent = errors.New("control: not a valid event")

// eventKinds are all kinds of events, each with the zero value of its data.
func eventKinds() map[string]any {
	all := event.RunKinds()
	maps.Copy(all, event.NodeKinds())
	return all
}

// schemas are the checked-in ones, ready to validate.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	all := map[string]*jsonschema.Resolved{}
	for kind := range eventKinds() {
		raw, err := schemaFiles.ReadFile("schemas/" + kind + ".json")
		if err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("control: schema of %s: %w", kind, err)
		}
		if all[kind], err = s.Resolve(nil); err != nil {
			return nil, fmt.Errorf("control: schema of %s: %w", kind, err)
		}
	}
	return all, nil
})

// ValidateEvent checks the document of an event against the schema of its
// kind. A kind without a schema is an error.
func ValidateEvent(raw []byte) error {
	all, err := schemas()
	if err != nil {
		return err
	}
	var e struct {
		Kind string `json:"kind"`
	}
	var document map[string]any
	if err := errors.Join(json.Unmarshal(raw, &e), json.Unmarshal(raw, &document)); err != nil {
		return fmt.Errorf("%w: %w", ErrEvent, err)
	}
	s := all[e.Kind]
	if s == nil {
		return fmt.Errorf("%w: no schema for kind %q", ErrEvent, e.Kind)
	}
	if err := s.Validate(document); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrEvent, e.Kind, err)
	}
	return nil
}
