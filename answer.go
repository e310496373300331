package troupe

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/tool"
)

// Answer runs a task whose answer is a value of a Go type. The model receives the type's
// JSON Schema; an answer that does not fit is sent back to the model, and one that fits is
// decoded.
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

// Answers returns the agent with the JSON Schema of a Go type as its output schema:
// whichever caller gives the agent a task, a parent included, reads an answer that is JSON
// and fits the type.
func Answers[T any](a Agent) (Agent, error) {
	schema, err := tool.SchemaOf[T]()
	if err != nil {
		return a, fmt.Errorf("troupe: agent %s: %w", a.Name, err)
	}
	a.OutputSchema = schema
	return a, nil
}
