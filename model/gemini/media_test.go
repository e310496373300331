package gemini_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model/gemini"
)

// Media stand before the text that speaks of them, and how finely they are seen is
// said, because it is what they cost.
func TestMediaOnTheWire(t *testing.T) {
	req := wiretest.Request()
	req.Messages = wiretest.Shown()
	_, body, _ := completeWith(t, gemini.Config{APIKey: wiretest.Key}, req, wireDialect().Hello...)
	want := parseJSON(t, `{"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "YQ=="}},
		{"inlineData": {"mimeType": "application/pdf", "data": "Yg=="}}, {"text": "[document c.csv]\n1,2\n[end of the document]"}, {"text": "What is this?"}]},
		{"role": "model", "parts": [{"text": "Three things."}]}, {"role": "user", "parts": [{"text": "Really?"}]}],
		"generationConfig": {"maxOutputTokens": 1000, "mediaResolution": "MEDIA_RESOLUTION_HIGH"}}`)
	for key, value := range want {
		if diff := cmp.Diff(value, body[key]); diff != "" {
			t.Error(diff)
		}
	}
}
