package troupe

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/tool"
)

// Answer is Run for an answer of a Go type: the model is told its JSON Schema,
// an answer that does not fit is sent back to it, and one that fits is decoded.
func Answer[T any](ctx context.Context, n *Node, t Task) (T, Result, error) {
	var answer T
	schema, err := tool.SchemaOf[T]()
	if err != nil {
		return answer, Result{}, fmt.Errorf("troupe: %w", err)
	}
	t.JSONSchema = json.RawMessage(schema)
	r, err := n.Run(ctx, t)
	if err != nil {
		return answer, r, err
	}
	if err := json.Unmarshal([]byte(r.Text), &answer); err != nil {
		return answer, r, fmt.Errorf("%w: run %s: %w", ErrAnswer, r.Run, err)
	}
	return answer, r, nil
}

// Answers is an agent whose answers are of a Go type, whoever gives it a task:
// a parent reads them as JSON that fits.
func Answers[T any](a Agent) (Agent, error) {
	schema, err := tool.SchemaOf[T]()
	if err != nil {
		return a, fmt.Errorf("troupe: agent %s: %w", a.Name, err)
	}
	a.OutputSchema = schema
	return a, nil
}
