package modelhttp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// FuzzJSONWriter: the writer writes what encoding/json does, whatever a text, a name or an id holds.
func FuzzJSONWriter(f *testing.F) {
	for _, text := range []string{"", "a", `{"a": [1]}`, " {}\n", `{"a`, "a\"\\\b\f\n\r\t\x00\x1f\x7f<&>/", "\u2028\u2029\u2027\u202a é 日本 😀", "a\xffb\xe2\x80", "\xe2\x80\xa8", "1-0", "{\xff}"} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, text, id string) {
		call := model.ToolCall{ID: id, Name: text, Args: text}
		want, err := modelhttp.EncodeBody(struct {
			A string          `json:"a"`
			B string          `json:"b,omitempty"`
			C []any           `json:"c"`
			D int64           `json:"d"`
			E any             `json:"e"`
			F json.RawMessage `json:"f"`
			G bool            `json:"g"`
		}{text, text, []any{modelhttp.CallID("call_", id), string(modelhttp.CallArguments(call)), struct{}{}, []string{}}, -7, []any{text, nil}, json.RawMessage(`{"x":[]}`), true})
		if err != nil {
			t.Fatal(err)
		}
		w := modelhttp.NewJSONWriter(model.Request{})
		w.Open('{')
		w.TextField("a", text)
		w.OptionalField("b", text)
		w.Name("c")
		w.Open('[')
		w.CallID("call_", id)
		w.ArgumentsText(&call)
		w.Open('{')
		w.Close('}')
		w.Open('[')
		w.Close(']')
		w.Close(']')
		w.IntField("d", -7)
		w.ValueField("e", []any{text, nil})
		w.RawField("f", json.RawMessage(`{"x":[]}`))
		w.LiteralField("g", "true")
		w.Close('}')
		if got, err := w.Body(); err != nil || string(got) != string(want) {
			t.Errorf("%q: %s, want %s, %v", text, got, want, err)
		}
	})
}

func TestValuesThatDoNotEncodeAreNotSent(t *testing.T) {
	w := modelhttp.NewJSONWriter(model.Request{})
	w.Open('{')
	w.ValueField("a", func() {})
	w.Close('}')
	if body, err := w.Body(); err == nil {
		t.Errorf("%s", body)
	}
}

// TestASmallRequestHasNoLargeBuffer: it would hold the buffer for as long as its model thinks.
func TestASmallRequestHasNoLargeBuffer(t *testing.T) {
	large := model.Request{Messages: []model.Message{{Text: strings.Repeat("a", 1<<20)}}}
	again := false
	for range 10 { // a pool may lose a buffer
		modelhttp.NewJSONWriter(large).Reuse()
		w := modelhttp.NewJSONWriter(model.Request{})
		w.Open('{')
		if body, err := w.Body(); err != nil || cap(body) > 1<<16 {
			t.Fatalf("%d bytes, %v", cap(body), err)
		}
		w.Reuse()
		second := modelhttp.NewJSONWriter(model.Request{})
		second.Open('[')
		if body, err := w.Body(); err == nil && string(body[:1]) == "[" {
			again = true
		}
	}
	if !again {
		t.Error("no buffer of a request of the same size was used again")
	}
}
