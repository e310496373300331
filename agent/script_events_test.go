package agent_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// noteData prints what an observer is told, as on the wire, without the parts that are zero.
func noteData(t *testing.T, data any) string {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	var v any
	if err := in.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(withoutZeros(v)); err != nil {
		t.Fatal(err)
	}
	return clipData(strings.TrimSpace(b.String()))
}

// withoutZeros removes fields of JSON that are zero; what has no other field is zero, too.
func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if inner = withoutZeros(inner); inner == nil {
				delete(v, k)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case json.Number:
		if v == "0" {
			return nil
		}
	}
	return v
}
