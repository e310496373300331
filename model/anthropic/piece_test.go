package anthropic

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/troupe-run/troupe/internal/modelhttp"
)

// usualPieces are events that are a piece of a content block.
var usualPieces = []string{
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" \"tok\\en\"\n"}}`,
	`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB+/=="}}`,
	`{"type":"content_block_stop","index":0}`,
}

// FuzzPiece: an event decodes to what encoding/json decodes it to, whatever was decoded before.
func FuzzPiece(f *testing.F) {
	for _, event := range append([]string{`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}`, `{"type":"a","type":"b"}`, `{"delta":null,"index":null}`, `{"Type":"a"}`, `{"index":"7"}`, `{"delta":{"text":7}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`, `{"type":"content_block_start","content_block":{"type":"text","text":""}}`, `{"delta":[]}`, `{`, `null`}, usualPieces...) {
		f.Add([]byte(event))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got streamEvent
		wantErr := modelhttp.DecodeEvent(data, &want)
		if err := got.decode([]byte(usualPieces[0])); err != nil {
			t.Fatal(err)
		}
		err := got.decode(data)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, want %v", data, err, wantErr)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err == nil && diff != "" {
			t.Errorf("%q: %s", data, diff)
		}
	})
}

// TestUsualPiecesTakeTheShortWay: events as the provider sends them need no encoding/json, and hardly any memory.
func TestUsualPiecesTakeTheShortWay(t *testing.T) {
	var e streamEvent
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
