package supervisor

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// TestBytesInJSONBoundsEncodedSize: a text takes in a Summary at least what it takes in the row of the index.
func TestBytesInJSONBoundsEncodedSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytesInJSON(text); n < len(data)-2 {
			t.Errorf("%q: %d bytes, counted %d", text, len(data)-2, n)
		}
	})
	if n := bytesInJSON("<<<"); n != 18 {
		t.Errorf("<<<: %d", n)
	}
}
