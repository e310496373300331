package openai

import (
	"encoding/json"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// schemaName is the name of an answer's schema in requests.
const schemaName = "answer"

// answerFormat is the schema of an answer as it is sent.
type answerFormat struct {
	Type   string          `json:"type,omitempty"` // in Responses; Chat Completions has it in another field
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// answerSchema returns the format to send for the schema of a request. OpenAI enforces a schema
// of the subset that it supports; any other schema is only a hint to the model.
func (c *Client) answerSchema(req model.Request) (answerFormat, bool) {
	callable := len(req.Tools) > 0 && !req.NoTools
	if !modelhttp.IsObject(req.Schema) || modelhttp.ToolChoice(req) != "" || c.cfg.Structured == StructuredNever || c.cfg.Structured == StructuredAlone && callable {
		return answerFormat{}, false
	}
	var root struct{ Type any }
	if json.Unmarshal([]byte(req.Schema), &root) != nil || root.Type != "object" {
		// OpenAI rejects it, strict or not: the prompt contains the schema, and the loop checks the reply
		return answerFormat{}, false
	}
	if s, ok := modelhttp.ConstrainSchema(req.Schema, true); ok {
		return answerFormat{Name: schemaName, Schema: s, Strict: true}, true
	}
	return answerFormat{Name: schemaName, Schema: json.RawMessage(req.Schema)}, true
}
