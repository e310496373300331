package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-run/troupe/model"
)

// Func makes a tool of a typed Go function, in one line:
//
//	tool.Func("stock", "How many of an article are in stock.", model.Read, warehouse.Stock)
//
// In is a struct as New describes it. The model receives a string result as it is,
// and any other Out as JSON. An invalid name, class or type is an error of the Set,
// or of whatever else the tool is registered with: so a tool can be made where no
// error can be returned. The function gets the call that it serves from CallOf.
func Func[In, Out any](name, description string, class model.Class, call func(context.Context, In) (Out, error), opts ...Option) Tool {
	if call == nil {
		return brokenTool{name, fmt.Errorf("%w: %s has no function", ErrSpec, name)}
	}
	t, err := New(name, description, class, func(ctx context.Context, in In, c Call) (string, error) {
		out, err := call(context.WithValue(ctx, callKey{}, c), in)
		if err != nil {
			return "", err
		}
		return textOf(out)
	}, opts...)
	if err != nil {
		return brokenTool{name, err}
	}
	return t
}

func textOf(out any) (string, error) {
	if text, ok := out.(string); ok {
		return text, nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("the result is not JSON: %w", err)
	}
	return string(text), nil
}

type callKey struct{}

// CallOf is the call that a function of Func serves: its run, its key, its
// attempt. Outside of one it is the zero Call, whose Metric may not be called.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call) // zero outside
	return c
}

// brokenTool is a tool that could not be made.
type brokenTool struct {
	name string
	err  error
}

func (b brokenTool) Spec() model.ToolSpec { return model.ToolSpec{Name: b.name} }

func (b brokenTool) Call(context.Context, Call) (Result, error) { return Result{}, b.err }

// toolError returns the error of a tool that could not be made.
func toolError(t Tool) error {
	if t == nil {
		return fmt.Errorf("%w: a tool is nil", ErrSpec)
	}
	if b, ok := t.(brokenTool); ok {
		return b.err
	}
	return nil
}

// ErrType means that no JSON Schema can be made of a Go type.
var ErrType = errors.New("tool: no JSON Schema can be made of the type")

// SchemaOf returns the JSON Schema of a Go type, such as the type of an answer: its
// exported fields by their json names, all of them required but those with
// `omitempty`, with `jsonschema:"…"` tags as descriptions.
func SchemaOf[T any]() (string, error) {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrType, err)
	}
	compactSchema(s)
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrType, err)
	}
	return string(text), nil
}
