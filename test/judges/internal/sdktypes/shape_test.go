package sdktypes_test

import (
	"errors"
	"reflect"
	"testing"

	claude "github.com/anthropics/anthropic-sdk-go"
	gpt "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/troupe-run/troupe/test/judges/internal/sdktypes"
)

// TestShapeOfABodyIsCheckedAgainstSDKTypes: what the SDKs' types say is taken; what they do not know, or miss,
// or know of another kind, is not, however deep.
func TestShapeOfABodyIsCheckedAgainstSDKTypes(t *testing.T) {
	for _, c := range []struct {
		of   any
		body string
		fits bool
	}{
		{claude.MessageNewParams{}, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`, true},
		{claude.MessageNewParams{}, `{"model":"m","max_tokens":1.5,"messages":[]}`, false},
		{claude.MessageNewParams{}, `{"model":"m","max_tokens":1}`, false},
		{claude.MessageNewParams{}, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a","bogus":1}]}]}`, false},
		{claude.MessageNewParams{}, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","content":[]}]}]}`, false},
		{claude.MessageNewParams{}, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"eternal"}}]}]}`, false},
		{gpt.ChatCompletionNewParams{}, `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}],"stream":true}`, true},
		{gpt.ChatCompletionNewParams{}, `{"model":"m","messages":[{"role":"tool","content":"a"}]}`, false},
		{gpt.ChatCompletionNewParams{}, `{"model":"m","messages":[{"role":"poet","content":"a"}]}`, false},
		{gpt.ChatCompletionNewParams{}, `{"model":"m","messages":[],"max_token":1}`, false},
		{responses.ResponseNewParams{}, `{"model":"m","input":[{"role":"user","content":"a"},{"type":"reasoning","id":"r","summary":[],"encrypted_content":"e"},{"type":"function_call_output","call_id":"c","output":"o"}],"store":false}`, true},
		{responses.ResponseNewParams{}, `{"model":"m","input":[{"role":"user","content":"a","bogus":1}]}`, false},
		{responses.ResponseNewParams{}, `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"n","arguments":{}}]}`, false},
		{responses.ResponseNewParams{}, `{"model":"m","tools":[{"type":"function","name":"n","parameters":{}}]}`, false},
		{responses.ResponseNewParams{}, `{"model":"m","store":"no"}`, false},
		{struct {
			B []byte `json:"b"`
		}{}, `{"b":"skip_thought_signature_validator"}`, true},
		{struct {
			B []byte `json:"b"`
		}{}, `{"b":"?"}`, false},
		{responses.ResponseNewParams{}, `{`, false},
	} {
		err := sdktypes.CheckShape([]byte(c.body), reflect.TypeOf(c.of), "stream")
		if (err == nil) != c.fits || err != nil && !errors.Is(err, sdktypes.ErrShape) {
			t.Errorf("%T %s: %v", c.of, c.body, err)
		}
	}
}
