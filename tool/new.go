package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-run/troupe/model"
)

// Errors of making tools. ErrArgs is also the error of a call whose arguments do
// not fit the schema.
var (
	ErrName      = errors.New("tool: name must be 1 to 64 letters, digits, _ or -")
	ErrDuplicate = errors.New("tool: name is used twice")
	ErrSpec      = errors.New("tool: bad spec")
	ErrArgs      = errors.New("tool: the arguments do not fit the schema")
)

// Limits are the limits of one tool. A Tool may declare its own with a method
// Limits() Limits; zero fields mean the defaults.
type Limits struct {
	Timeout time.Duration // default TimeoutDefault
	Output  int           // bytes of Result.Text; default OutputBytesMax
	// Schema, when not empty, is the schema of the result: every result that is not an
	// error must be JSON that fits it.
	Schema string
	// Masked means that the tool redacts secrets itself, because it knows which file a
	// line is from; then only exact values are redacted after it.
	Masked bool
}

// Option changes the limits of a tool made by New.
type Option func(*Limits)

// Timeout bounds one call.
func Timeout(d time.Duration) Option { return func(l *Limits) { l.Timeout = d } }

// OutputLimit bounds the bytes of one result.
func OutputLimit(bytes int) Option { return func(l *Limits) { l.Output = bytes } }

// OutputSchema makes results that are not JSON of this schema error results.
func OutputSchema(schema string) Option { return func(l *Limits) { l.Schema = schema } }

// MasksItself declares that the tool's results need no further redaction by shape.
func MasksItself() Option { return func(l *Limits) { l.Masked = true } }

// New makes a tool of a Go function. In is a struct: its exported fields become
// the arguments, with json names, `omitempty` for optional arguments, and a
// `jsonschema:"…"` tag for the description. Unknown arguments are rejected.
//
// The schema is kept short, because every model call sends it: New enforces the rule
// against unknown arguments in code and does not write it into the schema.
func New[In any](name, description string, class model.Class, call func(ctx context.Context, in In, c Call) (string, error), opts ...Option) (Tool, error) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("%w: schema of %s: %w", ErrSpec, name, err)
	}
	if schema.Type != "object" {
		return nil, fmt.Errorf("%w: the input of %s must be a struct", ErrSpec, name)
	}
	compactSchema(schema)
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("%w: schema of %s: %w", ErrSpec, name, err)
	}
	f := &typedTool[In]{
		spec: model.ToolSpec{Name: name, Description: description, Schema: string(text), Class: class},
		call: call, names: schema.Properties,
	}
	for _, o := range opts {
		o(&f.limits)
	}
	if _, err := compileTool(f); err != nil {
		return nil, err
	}
	return f, nil
}

// compactSchema takes out of a generated schema what only costs tokens.
func compactSchema(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.Schema = ""
	if refusesAll(s.AdditionalProperties) {
		s.AdditionalProperties = nil
	}
	if slices.Equal(s.Types, []string{"null", "array"}) {
		s.Type, s.Types = "array", nil
	}
	for _, p := range s.Properties {
		compactSchema(p)
	}
	compactSchema(s.Items)
	compactSchema(s.AdditionalProperties)
}

// refusesAll recognizes the schema `false`, which is {"not": {}}.
func refusesAll(s *jsonschema.Schema) bool {
	if s == nil || s.Not == nil {
		return false
	}
	text, err := json.Marshal(s)
	return err == nil && string(text) == "false"
}

type typedTool[In any] struct {
	spec   model.ToolSpec
	limits Limits
	call   func(context.Context, In, Call) (string, error)
	names  map[string]*jsonschema.Schema // of the arguments
}

func (f *typedTool[In]) Spec() model.ToolSpec { return f.spec }

func (f *typedTool[In]) Limits() Limits { return f.limits }

// exactNames rejects arguments whose names differ from the schema's, if only in case.
// The JSON decoder would accept "Command" for "command", but hooks and people who read
// the call would have seen the other name.
func (f *typedTool[In]) exactNames(args []byte) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil {
		return nil // the decoder below reports the problem
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if f.names[name] == nil {
			return fmt.Errorf("%w: unknown field %q (known: %s)", ErrArgs, name, strings.Join(slices.Sorted(maps.Keys(f.names)), ", "))
		}
	}
	return nil
}

func (f *typedTool[In]) Call(ctx context.Context, c Call) (Result, error) {
	if err := f.exactNames(c.Args); err != nil {
		return Result{}, err
	}
	var in In
	d := json.NewDecoder(bytes.NewReader(c.Args))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrArgs, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Result{}, fmt.Errorf("%w: more than one JSON value", ErrArgs)
	}
	text, err := f.call(ctx, in, c)
	return Result{Text: text}, err
}
