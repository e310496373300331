// Package schema compiles JSON Schemas, each text once in a process: thousands of agents
// have the same few tools, and both the loop and the tool sets check arguments. The result
// depends on the text alone, so code that decides may use it; that a text was compiled
// before shows only in the time it takes.
package schema

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// KeptBytesMax bounds the texts in the cache. Beyond it the cache is emptied, and texts are
// compiled again as they come.
const KeptBytesMax = 1 << 20

// Schema is a compiled schema. It is shared, and must not be changed.
type Schema struct {
	root           *schemaNode
	kind           string
	needsEvaluated bool // some schema needs to know what others have seen
}

// Compile checks and compiles a schema, and tries it once, so that a schema that can check
// nothing, or nothing within StepsMax, is refused here and not at every use.
func Compile(text string) (*Schema, error) { return schemaCache.compileOnce(text) }

// Type returns the one type that the schema requires, if it requires one.
func (s *Schema) Type() string { return s.kind }

// Validate reports why a value, as encoding/json decodes it, does not fit the schema. The
// text depends on the schema and the value alone: of several faults it names the first in
// document order, with names sorted. A value that takes too much work to check does not
// fit: ErrCost.
func (s *Schema) Validate(v any) error {
	_, err := s.countSteps(v)
	return err
}

// countSteps is Validate, and returns the steps that the check took.
func (s *Schema) countSteps(v any) (steps int, err error) {
	c := validation{stepsLeft: StepsMax, results: map[nodeValue]checkResult{}, trackEvaluated: s.needsEvaluated}
	found := c.applySchema(s.root, measureValue(v)).fault
	switch {
	case c.spent:
		return StepsMax, costError("this value")
	case found != nil:
		return StepsMax - c.stepsLeft, found
	}
	return StepsMax - c.stepsLeft, nil
}

var schemaCache = compileCache{bytesMax: KeptBytesMax}

type compileCache struct {
	bytesMax int

	mu       sync.Mutex
	outcomes map[string]compileOutcome
	bytes    int
}

type compileOutcome struct {
	schema *Schema
	err    error
}

func (m *compileCache) compileOnce(text string) (*Schema, error) {
	m.mu.Lock()
	o, ok := m.outcomes[text]
	m.mu.Unlock()
	if ok {
		return o.schema, o.err
	}
	o.schema, o.err = compileText(text)
	m.storeOutcome(strings.Clone(text), o)
	return o.schema, o.err
}

func (m *compileCache) storeOutcome(text string, o compileOutcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.outcomes == nil || m.bytes+len(text) > m.bytesMax {
		m.outcomes, m.bytes = map[string]compileOutcome{}, 0
	}
	if _, twice := m.outcomes[text]; !twice && len(text) <= m.bytesMax {
		m.outcomes[text] = o
		m.bytes += len(text)
	}
}

func compileText(text string) (*Schema, error) {
	if n := nestingDepth(text); n > NestingMax {
		return nil, fmt.Errorf("%w: it is nested %d deep, at most %d are allowed; name its parts in $defs", ErrSchema, n, NestingMax)
	}
	if err := Check(text); err != nil {
		return nil, err
	}
	d, root, err := parseSchema(text)
	if err != nil {
		return nil, err
	}
	s := &Schema{root: d.nodes[root], kind: root.Type, needsEvaluated: d.needsEvaluated}
	for _, least := range []any{map[string]any{}, []any{}, "", 0.0, true, nil} {
		if _, err := s.countSteps(least); errors.Is(err, ErrCost) {
			return nil, costError(fmt.Sprintf("an empty %s with it", measureValue(least).kind))
		}
	}
	return s, nil
}
