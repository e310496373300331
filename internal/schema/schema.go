// Package schema compiles JSON Schemas, each text once in a process: thousands
// of agents have the same few tools, and both the loop and the tool sets check
// arguments. What comes back depends on the text alone, so what decides may use
// it; that a text was compiled before can be seen only by the time it takes.
package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-run/troupe/model"
)

// KeptBytesMax bounds the texts that are remembered. Beyond it all are forgotten
// and compiled again as they come.
const KeptBytesMax = 1 << 20

// Schema is a compiled schema. It is shared, and must not be changed.
type Schema struct {
	resolved *jsonschema.Resolved
	shape    *node
}

// Compile checks and compiles a schema, and tries it once, so that one that can
// check nothing, or nothing within StepsMax, is refused here and not at every use.
func Compile(text string) (*Schema, error) { return kept.compile(text) }

// Type is the one type that the schema gives values, if it does.
func (s *Schema) Type() string { return s.resolved.Schema().Type }

// Validate reports what is wrong with a value, as encoding/json decodes it. One that
// is too much work to check does not fit: ErrCost.
func (s *Schema) Validate(v any) error {
	if !affordable(s.shape, weigh(v)) {
		return costError("this value")
	}
	return s.resolved.Validate(v)
}

var kept = memory{bytesMax: KeptBytesMax}

type memory struct {
	bytesMax int

	mu    sync.Mutex
	known map[string]outcome
	bytes int
}

type outcome struct {
	schema *Schema
	err    error
}

func (m *memory) compile(text string) (*Schema, error) {
	m.mu.Lock()
	o, ok := m.known[text]
	m.mu.Unlock()
	if ok {
		return o.schema, o.err
	}
	o.schema, o.err = compile(text)
	m.keep(strings.Clone(text), o)
	return o.schema, o.err
}

func (m *memory) keep(text string, o outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || m.bytes+len(text) > m.bytesMax {
		m.known, m.bytes = map[string]outcome{}, 0
	}
	if _, twice := m.known[text]; !twice && len(text) <= m.bytesMax {
		m.known[text] = o
		m.bytes += len(text)
	}
}

func compile(text string) (*Schema, error) {
	if err := model.CheckSchema(text); err != nil {
		return nil, err
	}
	n, err := shape(text)
	if err != nil {
		return nil, err
	}
	for _, least := range []any{map[string]any{}, []any{}, "", 0.0, true, nil} {
		if !affordable(n, weigh(least)) {
			return nil, costError(fmt.Sprintf("an empty %s with it", weigh(least).kind))
		}
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, err
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	// One of a version that the library does not know fails only when it is used.
	if err := r.Validate(map[string]any{}); err != nil && strings.Contains(err.Error(), "cannot validate version") {
		return nil, err
	}
	return &Schema{resolved: r, shape: n}, nil
}
