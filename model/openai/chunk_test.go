package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/troupe-run/troupe/internal/modelhttp"
)

// usualChunks are events as servers send them.
var usualChunks = []string{
	`{"id":"c1","object":"chat.completion.chunk","created":1732999999,"model":"m-1","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"ab"}`,
	`{"model":"m-1","choices":[{"index":0,"delta":{"content":" \"tok\\en\"\n\t\u00e9<é>"},"finish_reason":null}]}`,
	`{"model":"m-1","choices":[{"index":0,"delta":{"reasoning_content":"hm","reasoning":"so"}}]}`,
	`{"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"name":"look","arguments":"{\"row\":12}"},"id":"c12","index":0,"type":"function"},{"index":1}]},"finish_reason":"tool_calls","index":0}],"created":1}`,
	` { "choices" : [ ] , "usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25,"cost":0.25,"prompt_tokens_details":{"cached_tokens":7,"cache_write_tokens":3,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":2,"x":[-1.5,true,false,{}]}}} `,
	`{"error":null,"choices":null,"usage":{"prompt_tokens_details":null}}`,
}

// unusualChunks are events that the usual way leaves to encoding/json.
var unusualChunks = []string{
	``, `null`, `[]`, `{`, `{"a":1}x`, `{"Model":"x"}`, `{"model":"a","model":"b"}`, `{"model":"a","model":null}`, `{"model":7}`, `{"choices":{}}`, `{"choices":[{"delta":{"content":["a"]}}]}`,
	`{"choices":[{"index":1}],"choices":[{"delta":{}}]}`, `{"choices":[{"delta":{"content":"\ud83d\ude00"}}]}`, "{\"model\":\"a\xff\"}", "{\"model\":\"a\nb\"}", `{"model":"\q"}`, `{"model":"\u12"}`,
	`{"usage":{"prompt_tokens":-1,"completion_tokens":1.5,"total_tokens":"7"}}`, `{"usage":{"prompt_tokens":01}}`, `{"usage":{"prompt_tokens":1,"prompt_tokens":null}}`, `{"a":-null}`, `{"a":- 5}`, "{\"a\":[-\n5]}", `{"a":1.}`, `{"a":1. 5}`, `{"a":1e5}`, `{"a":tru}`,
	`{"error":{"message":"busy"}}`, `{"choices":[{"delta":{"reasoning":{"a":1}}}]}`, `{"a":[1,]}`, `{"a":1,}`, `{,"a":1}`, `{"a" 1}`, `{"\u006dodel":"x"}`, `{"ſ":1}`, `{"usage":{"prompt_tokens":99999999999999999999}}`,
	`{"a":"\`, `{"choices":[null,{"delta":null}]}`,
}

// FuzzChunk: an event decodes to what encoding/json decodes it to, whatever the chunk held before.
func FuzzChunk(f *testing.F) {
	for _, chunk := range append(append([]string{}, usualChunks...), unusualChunks...) {
		f.Add([]byte(chunk))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got chatChunk
		wantErr := modelhttp.DecodeEvent(data, &want)
		if err := got.decode([]byte(usualChunks[3])); err != nil {
			t.Fatal(err)
		}
		err := got.decode(data)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, want %v", data, err, wantErr)
		}
		if string(want.Error) == "null" {
			want.Error = nil // both are no error
		}
		if string(got.Error) == "null" {
			got.Error = nil
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err == nil && diff != "" {
			t.Errorf("%q: %s", data, diff)
		}
	})
}

// TestUsualChunksTakeTheShortWay: events as servers send them need no encoding/json, and hardly any memory: a reply is one
// for each token.
func TestUsualChunksTakeTheShortWay(t *testing.T) {
	var k chatChunk
	for _, chunk := range usualChunks {
		if !k.decodeKnown([]byte(chunk)) {
			t.Errorf("%s is left to encoding/json", chunk)
		}
	}
	data := []byte(usualChunks[1])
	if n := testing.AllocsPerRun(100, func() { k.decodeKnown(data) }); n > 1 {
		t.Errorf("a piece of text makes %v allocations", n)
	}
}

// usualPieces are events of the Responses API that are a piece of a reply.
var usualPieces = []string{
	`{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" \"tok\\en\"\n","logprobs":[],"obfuscation":"ab"}`,
	`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"a\":","item":null}`,
}

// FuzzPiece: an event of the Responses API decodes to what encoding/json decodes it to, whatever was decoded before.
func FuzzPiece(f *testing.F) {
	for _, event := range append(append([]string{}, usualPieces...), unusualChunks...) {
		f.Add([]byte(event))
	}
	for _, event := range []string{`{"type":"error","code":"x","message":null}`, `{"type":"response.completed","response":{"model":"m"}}`, `{"item":{"id":"a"}}`, `{"type":"a","delta":{"b":1}}`} {
		f.Add([]byte(event))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got responseEvent
		wantErr := modelhttp.DecodeEvent(data, &want)
		if err := got.decode([]byte(usualPieces[1])); err != nil {
			t.Fatal(err)
		}
		err := got.decode(data)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, want %v", data, err, wantErr)
		}
		for _, raw := range []*json.RawMessage{&want.Error, &want.Code, &want.Message, &got.Error, &got.Code, &got.Message} {
			if string(*raw) == "null" {
				*raw = nil // an event of another type has neither
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err == nil && diff != "" {
			t.Errorf("%q: %s", data, diff)
		}
	})
}

func TestUsualPiecesTakeTheShortWay(t *testing.T) {
	var e responseEvent
	for _, event := range usualPieces {
		if !e.decodePiece([]byte(event)) {
			t.Errorf("%s is left to encoding/json", event)
		}
	}
	data := []byte(usualPieces[0])
	if n := testing.AllocsPerRun(100, func() { e.decodePiece(data) }); n > 1 {
		t.Errorf("a piece of text makes %v allocations", n)
	}
}
