package openai

import (
	"encoding/json"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/wire"
)

// schemaName is what the schema of an answer is called on the wire.
const schemaName = "answer"

// format is the schema of an answer as it is sent.
type format struct {
	Type   string          `json:"type,omitempty"`
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// json is the format with its type, or with none where that stands beside it.
func (f format) json(kind string) json.RawMessage {
	f.Type = kind
	data, err := json.Marshal(f)
	if err != nil {
		return nil // the schema is JSON
	}
	return data
}

// schema is what is sent of the schema of a request. The model is held to it
// where it is of the subset that OpenAI takes; else it is told, and tries.
func (c *Client) schema(req model.Request) (format, bool) {
	callable := len(req.Tools) > 0 && !req.NoTools
	if !wire.IsObject(req.Schema) || wire.Choice(req) != "" || c.cfg.Structured == StructuredNever || c.cfg.Structured == StructuredAlone && callable {
		return format{}, false
	}
	var root struct{ Type any }
	if json.Unmarshal([]byte(req.Schema), &root) != nil || root.Type != "object" {
		return format{}, false // refused, strict or not: the prompt says the schema, and the loop checks it
	}
	if s, ok := wire.Constrained(req.Schema, true); ok {
		return format{Name: schemaName, Schema: s, Strict: true}, true
	}
	return format{Name: schemaName, Schema: json.RawMessage(req.Schema)}, true
}
