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

	"github.com/troupe-run/troupe/model"
)

// KeptBytesMax bounds the texts in the cache. Beyond it the cache is emptied, and texts are
// compiled again as they come.
const KeptBytesMax = 1 << 20

// Schema is a compiled schema. It is shared, and must not be changed.
type Schema struct {
	root *node
	kind string
	seen bool // some schema needs to know what others have seen
}

// Compile checks and compiles a schema, and tries it once, so that a schema that can check
// nothing, or nothing within StepsMax, is refused here and not at every use.
func Compile(text string) (*Schema, error) { return kept.compile(text) }

// Type returns the one type that the schema requires, if it requires one.
func (s *Schema) Type() string { return s.kind }

// Validate reports why a value, as encoding/json decodes it, does not fit the schema. The
// text depends on the schema and the value alone: of several faults it names the first in
// document order, with names sorted. A value that takes too much work to check does not
// fit: ErrCost.
func (s *Schema) Validate(v any) error {
	_, err := s.measure(v)
	return err
}

// measure is Validate, and returns the steps that the check took.
func (s *Schema) measure(v any) (steps int, err error) {
	c := check{left: StepsMax, known: map[pair]verdict{}, notes: s.seen}
	found := c.apply(s.root, weigh(v)).fault
	switch {
	case c.spent:
		return StepsMax, costError("this value")
	case found != nil:
		return StepsMax - c.left, found
	}
	return StepsMax - c.left, nil
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
	if n := nesting(text); n > NestingMax {
		return nil, fmt.Errorf("%w: it is nested %d deep, at most %d are allowed; name its parts in $defs", model.ErrSchema, n, NestingMax)
	}
	if err := model.CheckSchema(text); err != nil {
		return nil, err
	}
	d, root, err := parse(text)
	if err != nil {
		return nil, err
	}
	s := &Schema{root: d.nodes[root], kind: root.Type, seen: d.seen}
	for _, least := range []any{map[string]any{}, []any{}, "", 0.0, true, nil} {
		if _, err := s.measure(least); errors.Is(err, ErrCost) {
			return nil, costError(fmt.Sprintf("an empty %s with it", weigh(least).kind))
		}
	}
	return s, nil
}
